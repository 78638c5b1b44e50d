"""How a task stands in detail, and the same as `rework_task` without `await`."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from everstep.domain.estimate import Estimate
from everstep.domain.ids import StepPath
from everstep.domain.progress import Progress
from everstep.domain.task import StepState
from everstep.domain.values import JsonObject
from everstep.facade.task import Task

T = TypeVar("T")


class Waiting(Protocol):
    """A loop in a thread of its own."""

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Let it carry this out, and block until it has."""


class ReworkedBlockingTask:
    """The part of a blocking `Task` that goes back, changes what comes, or takes back. A `dry_run` only tells."""

    def __init__(self, task: Task, thread: Waiting) -> None:
        self._task = task
        self._thread = thread

    @property
    def revision(self) -> int:
        return self._task.revision

    @property
    def progress(self) -> Progress:
        return self._task.progress

    @property
    def estimate(self) -> Estimate | None:
        return self._task.estimate

    @property
    def steps(self) -> Mapping[StepPath, StepState]:
        return self._task.steps

    def retry(
        self,
        from_step: str | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        confirm_effects: bool = False,
        note: str | None = None,
        dry_run: bool = False,
    ) -> Self | JsonObject:
        if dry_run:
            return self._thread.wait(self._task.retry(from_step, arguments, dry_run=True))
        self._thread.wait(self._task.retry(from_step, arguments, confirm_effects=confirm_effects, note=note))
        return self

    def fork(
        self,
        from_step: str,
        inputs: JsonObject | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        key: str | None = None,
        title: str | None = None,
        note: str | None = None,
        dry_run: bool = False,
    ) -> Self | JsonObject:
        if dry_run:
            return self._thread.wait(self._task.fork(from_step, inputs, arguments, dry_run=True))
        made = self._task.fork(from_step, inputs, arguments, key=key, title=title, note=note)
        return type(self)(self._thread.wait(made), self._thread)

    def patch(
        self, ops: Sequence[JsonObject], base_revision: int, *, note: str | None = None, dry_run: bool = False
    ) -> JsonObject:
        return self._thread.wait(self._task.patch(ops, base_revision, note=note, dry_run=dry_run))

    def undo(
        self, steps: Sequence[str] | None = None, *, note: str | None = None, dry_run: bool = False
    ) -> Self | JsonObject:
        if dry_run:
            return self._thread.wait(self._task.undo(steps, dry_run=True))
        return type(self)(self._thread.wait(self._task.undo(steps, note=note)), self._thread)
