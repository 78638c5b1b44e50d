"""Marks in the database."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, cast

from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.hold import Hold
from everstep.domain.ids import Digest, StepPath, TaskId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.task import Lease
from everstep.ports.marks import Begun, Kept, Mark

SHARES: Final = 10_000
"""Of a whole."""


@record
class TellUnit:
    """What is about to be said of a task; of one that is gone nothing is kept."""

    task: TaskId
    generation: int
    share: int
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        if desk.guard(self.task) is not None:
            desk.change("tell_progress", (self.task, self.generation, self.share))


@record
class MarkUnit:
    """How far a call has come; of no use to whoever does not hold the task."""

    lease: Lease
    step: StepPath
    mark: Mark
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Kept:
        guard, lease, mark = desk.guard(self.lease.task), self.lease, self.mark
        if guard is None or (guard.epoch, guard.worker) != (lease.epoch, lease.worker):
            return "gone"
        body = json.dumps(mark.cursor)
        values = (lease.task, self.step, mark.attempt, mark.tool, mark.input, body)
        if desk.change("put_checkpoint", values) != 1:
            return "gone"
        return "pausing" if guard.status is TaskStatus.PAUSING else "kept"


@record
class BeginUnit:
    """A call begins, if it has not; for whoever holds the task."""

    lease: Lease
    step: StepPath
    attempt: int
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Begun:
        guard, lease = desk.guard(self.lease.task), self.lease
        if guard is None or (guard.epoch, guard.worker) != (lease.epoch, lease.worker):
            return "gone"
        return "now" if desk.change("begin_call", (lease.task, self.step, self.attempt)) == 1 else "before"


class SqlMarks:
    """The verbs of `Marks` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def tell(self, task: TaskId, generation: int, fraction: float) -> None:
        """Durable before it is said."""
        unit = TellUnit(task=task, generation=generation, share=round(fraction * SHARES))
        await self._hold().writes.submit((unit,))

    async def told(self, task: TaskId, generation: int) -> float:
        """0 if nobody has said anything of this generation."""
        rows = await self._hold().readers.read(lambda reader: reader.rows("told_progress", (task,)))
        return max((share / SHARES for known, share in rows if known == generation), default=0.0)

    async def put(self, lease: Lease, step: StepPath, mark: Mark) -> Kept:
        """Durable when this returns."""
        (kept,) = await self._hold().writes.submit((MarkUnit(lease=lease, step=step, mark=mark),))
        return cast("Kept", kept)

    async def find(self, task: TaskId, step: StepPath) -> Mark | None:
        """The last one."""
        rows = await self._hold().readers.read(lambda reader: reader.rows("find_checkpoint", (task, step)))
        for attempt, tool, digest, body in rows:
            return Mark(attempt=attempt, tool=tool, input=Digest(digest), cursor=json.loads(body))
        return None

    async def begin(self, lease: Lease, step: StepPath, attempt: int) -> Begun:
        """Durable when this returns."""
        (begun,) = await self._hold().writes.submit((BeginUnit(lease=lease, step=step, attempt=attempt),))
        return cast("Begun", begun)


class WithMarks(ABC):
    """A store on a database, once it is open; and its marks."""

    @property
    @abstractmethod
    def _hold(self) -> Hold:
        """What is open; raises EngineClosed."""

    @property
    def marks(self) -> SqlMarks:
        """How far tasks were said to be, and calls have come."""
        return SqlMarks(lambda: self._hold)
