"""Marks in dictionaries."""

from collections.abc import Mapping

from everstep.adapters.stores.kept import Kept
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.states import TaskStatus
from everstep.domain.task import Lease
from everstep.ports.marks import Begun, Mark
from everstep.ports.marks import Kept as Word


class MemoryMarks:
    """The verbs of `Marks`."""

    def __init__(self, tasks: Mapping[TaskId, Kept]) -> None:
        self._tasks = tasks
        self._told: dict[TaskId, tuple[int, float]] = {}
        self._marks: dict[tuple[TaskId, StepPath], Mark] = {}
        self._begun: dict[tuple[TaskId, StepPath], int] = {}

    async def tell(self, task: TaskId, generation: int, fraction: float) -> None:
        """The most that was said."""
        if task in self._tasks:
            self._told[task] = max(self._told.get(task, (0, 0.0)), (generation, fraction))

    async def told(self, task: TaskId, generation: int) -> float:
        """0 if nobody has said anything of this generation."""
        known, fraction = self._told.get(task, (0, 0.0))
        return fraction if known == generation else 0.0

    async def put(self, lease: Lease, step: StepPath, mark: Mark) -> Word:
        """In place of the one before."""
        kept, before = self._held(lease), self._marks.get((lease.task, step))
        if kept is None:
            return "gone"
        if before is not None and before.attempt > mark.attempt:
            return "gone"
        self._marks[lease.task, step] = mark
        return "pausing" if kept.row.status is TaskStatus.PAUSING else "kept"

    async def find(self, task: TaskId, step: StepPath) -> Mark | None:
        """The last one."""
        return self._marks.get((task, step))

    async def begin(self, lease: Lease, step: StepPath, attempt: int) -> Begun:
        """The first of all."""
        if self._held(lease) is None:
            return "gone"
        if self._begun.get((lease.task, step), 0) >= attempt:
            return "before"
        self._begun[lease.task, step] = attempt
        return "now"

    def forget(self, task: TaskId) -> None:
        """It is gone."""
        self._told.pop(task, None)
        for place in [place for place in self._marks if place[0] == task]:
            del self._marks[place]
        for place in [place for place in self._begun if place[0] == task]:
            del self._begun[place]

    def _held(self, lease: Lease) -> Kept | None:
        kept = self._tasks.get(lease.task)
        ours = kept is not None and (kept.epoch, kept.worker) == (lease.epoch, lease.worker)
        return kept if ours else None
