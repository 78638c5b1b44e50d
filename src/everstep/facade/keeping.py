"""Keeping: the desk's operations of whoever keeps the house: who may ask, what goes, who carries, what is well."""

import asyncio
from collections.abc import Sequence
from typing import Final

from everstep.domain.errors import Conflict
from everstep.domain.events import Who
from everstep.domain.ids import Instant, TaskId, WorkerId
from everstep.engine.catalog import Entry
from everstep.engine.runtime import Runtime
from everstep.facade.access import AccessDesk
from everstep.facade.rework import Rework
from everstep.ports.housekeeping import KeptWorker
from everstep.ports.tool import Health, ToolError

HEALTH_S: Final = 10.0


class Keeping(Rework):
    """Access, deletion, workers, health of tools."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.access = AccessDesk(runtime.kit)
        """Tokens, and whose they are."""
        self._well: dict[str, str] = {}
        """What tools said of themselves when they were last asked."""
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

    async def tool_health(self, entry: Entry) -> Health:
        """Whether a tool can be used; one that cannot say so within a while is not well."""
        found = await self._health(entry)
        if self._well.get(entry.spec.name) != found.status:
            self._well[entry.spec.name] = found.status
            self._kit.feed.tell_all("tool", name=entry.spec.name, status=found.status, detail=found.detail)
        return found

    async def _health(self, entry: Entry) -> Health:
        try:
            async with asyncio.timeout(HEALTH_S):
                return await entry.adapter.health()
        except TimeoutError:
            return Health(status="unhealthy", detail=f"no answer within {HEALTH_S:g} s")
        except (OSError, ToolError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            return Health(status="unhealthy", detail=type(error).__name__)
