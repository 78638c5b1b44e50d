"""Task: one execution of a plan, as Python sees it. A snapshot with the means to look again and to act."""

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType

from everstep.domain.commands import Reply
from everstep.domain.errors import EngineClosed
from everstep.domain.events import TaskCancelled, TaskCompleted, TaskFailed
from everstep.domain.ids import PauseId, Seq, StepPath, TaskId
from everstep.domain.states import TaskStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject
from everstep.facade.foreseen_task import ForeseenTask
from everstep.facade.views import Event, Pause, Result, event_of, named
from everstep.ports.store import Journaled
from everstep.wire.event import decode
from everstep.wire.remedies import error_of_end, error_of_task

ENDS = frozenset({TaskCompleted.TYPE, TaskFailed.TYPE, TaskCancelled.TYPE})
PAUSED = "task.paused"


class Task(ForeseenTask):
    """A handle on one task. Its properties are as of the last look; `refresh()` looks again."""

    @property
    def id(self) -> str:
        """`t_…`"""
        return self._state.id

    @property
    def task_id(self) -> TaskId:
        """The same, as the domain's type."""
        return self._state.id

    @property
    def status(self) -> str:
        """Where it stands."""
        return self._state.status.value

    @property
    def revision(self) -> int:
        """Which revision of its plan it follows."""
        return self._state.revision

    @property
    def outcome(self) -> str | None:
        """`success` or `partial` once completed."""
        return self._state.outcome

    @property
    def outputs(self) -> JsonObject | None:
        """The plan's outputs once completed."""
        return outputs_of(self._state)

    @property
    def error(self) -> JsonObject | None:
        """Why it failed."""
        return error_of_task(self._state)

    @property
    def steps(self) -> Mapping[StepPath, StepState]:
        """Every step and sub-step by its path."""
        return MappingProxyType(self._state.steps)

    @property
    def pauses(self) -> tuple[Pause, ...]:
        """Open questions, oldest first."""
        return tuple(Pause(self.id, pause, self._answer) for pause in self._state.pauses.values())

    @property
    def pause_reason(self) -> Pause | None:
        """The oldest open question."""
        return next(iter(self.pauses), None)

    async def refresh(self) -> "Task":
        """Look again."""
        self._state = await self._desk.get(self.id, self._who)
        await self._desk.forecast.of(self._state)
        if self._state.outputs is not None:
            self._state.outputs.value = await self._desk.value(self._state.outputs)
        return self

    async def events(self, after: int = 0, *, follow: bool = True) -> AsyncIterator[Event]:
        """The journal, then live: dense, in order; ends after the terminal event of the newest generation."""
        if follow:
            await self.refresh()
            follow = not self._state.terminal
        head = self._state.seq
        async for journaled in self._desk.events(self._state.id, Seq(after), follow=follow):
            yield event_of(journaled)
            if follow and journaled.type in ENDS and journaled.seq > head:
                return

    async def result(self, *, on_pause: str = "wait") -> Result:
        """Wait until it has ended, or (`on_pause="return"`) until it needs someone."""
        awaited = ENDS | {PAUSED} if on_pause == "return" else ENDS
        while not self._state.terminal:
            if on_pause == "return" and self._state.status is TaskStatus.PAUSED:
                break
            journaled = await self._desk.first(self._state.id, awaited, self._state.seq)
            if journaled is None:
                raise EngineClosed("the engine stopped before the task ended; its state is safe in the store")
            if journaled.type in ENDS:
                return await self._result_of(journaled)
            await self.refresh()
        return await self._result()

    async def pause(self, mode: str = "graceful", *, note: str | None = None) -> "Task":
        """Ask for a pause at the next safe point; `immediate` cuts off calls that may be made again."""
        self._state = await self._desk.pause(self._state.id, self._who, note, mode)
        return self

    async def resume(self, *, note: str | None = None) -> "Task":
        """Go on after a pause someone asked for."""
        self._state = await self._desk.resume(self._state.id, self._who, note)
        return self

    async def cancel(self, *, note: str | None = None) -> "Task":
        """End it."""
        self._state = await self._desk.cancel(self._state.id, self._who, note)
        return self

    async def _answer(self, pause: str, reply: Reply, by: str | None) -> None:
        self._state = await self._desk.answer(PauseId(pause), named(self._who, by), reply)

    async def _result(self) -> Result:
        state = self._state
        outputs = None if state.outputs is None else await self._desk.value(state.outputs)
        return Result(
            task_id=self.id,
            status=self.status,
            outcome=self.outcome,
            outputs=outputs if isinstance(outputs, dict) else None,
            issues=state.issues,
            error=self.error,
        )

    async def _result_of(self, journaled: Journaled) -> Result:
        """A result straight from the terminal event: nothing has to be read again."""
        body = decode(journaled.encoded).body
        assert isinstance(body, TaskCompleted | TaskFailed | TaskCancelled)
        outputs = await self._desk.value(body.outputs) if isinstance(body, TaskCompleted) else None
        return Result(
            task_id=journaled.task,
            status=_STATUS[type(body)].value,
            outcome=body.outcome if isinstance(body, TaskCompleted) else None,
            outputs=outputs if isinstance(outputs, dict) else None,
            issues=body.issues,
            error=error_of_end(body) if isinstance(body, TaskFailed) else None,
        )

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.status} {self._state.title!r}>"


def outputs_of(state: TaskState) -> JsonObject | None:
    """The outputs, if they are at hand."""
    value = state.outputs.value if state.outputs is not None else None
    return value if isinstance(value, dict) else None


_STATUS = {
    TaskCompleted: TaskStatus.COMPLETED,
    TaskFailed: TaskStatus.FAILED,
    TaskCancelled: TaskStatus.CANCELLED,
}
