"""Keeping: the desk's operations of whoever keeps the house: who may ask, what goes, who carries, what is well."""

import asyncio
from collections.abc import Sequence

from everstep.domain.errors import Conflict
from everstep.domain.events import Who
from everstep.domain.ids import Instant, TaskId, WorkerId
from everstep.engine.catalog import Entry
from everstep.engine.runtime import Runtime
from everstep.engine.wellness import Known
from everstep.facade.access import AccessDesk
from everstep.facade.rework import Rework
from everstep.ports.housekeeping import KeptWorker


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

    async def workers(self) -> Sequence[KeptWorker]:
        """Who carries tasks of this store, or did."""
        return await self._kit.passage.traffic.housekeeping.workers()

    @property
    def worker(self) -> WorkerId:
        """Who this engine is."""
        return self._kit.worker

    async def tool_health(self, entry: Entry) -> Known:
        """Whether a tool can be used; one that cannot say so within a while is not well."""
        before, known = self.last_health(entry), await self._runtime.duties.rounds.look(entry.family, entry.adapter)
        if before.at is None and known.health.status == before.health.status:  # even that is news
            self._kit.feed.tell_all(
                "tool", name=entry.spec.name, status=known.health.status, detail=known.health.detail
            )
        return known

    def last_health(self, entry: Entry) -> Known:
        """What it said when it was last asked."""
        return self._kit.passage.wellness.of(entry.family)
