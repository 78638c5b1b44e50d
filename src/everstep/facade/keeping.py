"""Keeping: the desk's operations of whoever keeps the house: who may ask, what goes, who carries, what is well."""

import asyncio
from collections.abc import Sequence
from typing import Final

from everstep.domain.errors import Conflict, EverstepError, NotFound
from everstep.domain.events import Who
from everstep.domain.ids import Instant, TaskId, WorkerId
from everstep.domain.suggest import did_you_mean, suggest
from everstep.engine.catalog import Entry
from everstep.engine.runtime import Runtime, whole
from everstep.facade.access import AccessDesk
from everstep.facade.rework import Rework
from everstep.ports.housekeeping import KeptWorker
from everstep.ports.tool import Health

UNNAMED_MS: Final = 3_600_000
"""A value is kept before the line that names it: so long it is left alone."""


class Keeping(Rework):
    """Access, deletion, workers, health of tools."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.access = AccessDesk(runtime.kit)
        """Tokens, and whose they are."""
        self.url: str | None = None
        """Where this engine is served, if it is."""

    async def live_tasks(self, owner: str) -> int:
        """How many unfinished tasks an owner has."""
        return await self._kit.passage.traffic.live_tasks(owner)

    @whole
    async def delete(self, task: TaskId, who: Who) -> None:
        """A task that has ended is gone; raises Conflict where it has not."""
        self._runtime.require_ready()
        async with self._kit.commanding.setdefault(task, asyncio.Lock()):
            until = Instant(self._kit.clock.now() + self._kit.limits.keys_ms)
            if not await self._kit.passage.traffic.housekeeping.delete(who.owner, task, until):
                raise Conflict(
                    "only a task that has ended can be deleted", what_to_do=f"end it first: everstep cancel {task}"
                )
            self._kit.feed.gone(task)
        await self._collect()

    async def _collect(self) -> None:
        """Large values that only this task named; what is not gone now goes with the next one."""
        try:
            before = Instant(self._kit.clock.now() - UNNAMED_MS)
            await self._kit.passage.traffic.housekeeping.collect(before)
        except EverstepError as error:
            self._kit.sink.trouble("cannot collect what nobody names", error)

    async def workers(self) -> Sequence[KeptWorker]:
        """Who carries tasks of this store, or did."""
        return await self._kit.passage.traffic.housekeeping.workers()

    @property
    def worker(self) -> WorkerId:
        """Who this engine is."""
        return self._kit.worker

    def tool(self, name: str) -> Entry:
        """The tool of that name; raises NotFound with the nearest one."""
        found = self._kit.catalog.find(name)
        if found is None:
            near = did_you_mean(f"no tool '{name}'", suggest(name, self._kit.catalog.names))
            raise NotFound(near, what_to_do="everstep tools")
        return found

    async def tool_health(self, entry: Entry) -> tuple[Health, Instant | None]:
        """Whether a tool can be used, asked now; one that cannot say so within a while is not well."""
        (before, at), known = (
            self.last_health(entry),
            await self._runtime.duties.rounds.look(entry.family, entry.adapter),
        )
        if at is None and known.health.status == before.status:  # even that is news
            self._kit.feed.tell_all("tool", name=entry.spec.name, status=before.status, detail=known.health.detail)
        return known.health, known.at

    def last_health(self, entry: Entry) -> tuple[Health, Instant | None]:
        """What it said when it was last asked, and when that was."""
        known = self._kit.passage.wellness.of(entry.family)
        return known.health, known.at
