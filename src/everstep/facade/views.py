"""What Python callers hold: an event, a result, a pause. Snapshots; nothing here changes by itself."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from everstep.domain.commands import Reply
from everstep.domain.errors import EverstepError
from everstep.domain.events import Issue, Who
from everstep.domain.ids import Instant
from everstep.domain.pauses import Pause as OpenPause
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.store import Journaled
from everstep.wire.event import loads


@record
class Event:
    """One line of a task's journal, as at every door."""

    task: str
    seq: int
    at: str
    type: str
    step: str | None
    generation: int
    actor: JsonObject
    data: JsonObject


def event_of(journaled: Journaled) -> Event:
    """An event, read from the bytes of the journal."""
    envelope = loads(journaled.encoded)
    return Event(**envelope)


@record
class Result:
    """How a task stands when waiting for it ended."""

    task_id: str
    status: str
    outcome: str | None
    outputs: JsonObject | None
    issues: tuple[Issue, ...]
    error: JsonObject | None

    def raise_for_status(self) -> "Result":
        """Raise if the task did not complete; the only way a failed task raises."""
        if self.status != TaskStatus.COMPLETED:
            what = self.error["message"] if self.error else "it waits for someone"
            raise EverstepError(f"task {self.task_id} is {self.status}: {what}", code="task_not_completed")
        return self


Say: TypeAlias = Callable[[str, Reply, str | None], Awaitable[None]]
"""Give an answer to a pause, in somebody's name."""


def named(who: Who, by: str | None) -> Who:
    """The same caller, with the name of the person who really answers."""
    return who if by is None else replace(who, actor=replace(who.actor, id=by))


class Pause:
    """An open question of a task, and every way to answer it; `by` names who answers, if not the engine's owner."""

    def __init__(
        self, task: str, pause: OpenPause, answer: Callable[[str, Reply, str | None], Awaitable[None]]
    ) -> None:
        self._pause = pause
        self._answer = answer
        self.task = task
        self.id = pause.id
        self.step = pause.step
        self.type = pause.type.value
        self.reason = pause.reason
        self.title = pause.title
        self.why = pause.why
        self.guidance = pause.guidance
        self.answers = pause.answers
        self.call = pause.call
        self.show = pause.show
        self.may_answer = pause.may_answer
        self.expires_at = pause.expires_at

    async def approve(self, *, note: str | None = None, by: str | None = None) -> None:
        """Allow exactly the call that this pause shows."""
        await self._say(Reply(answer="approve", note=note, digest=self._digest), by)

    async def edit(self, arguments: JsonObject, *, note: str | None = None, by: str | None = None) -> None:
        """Allow the call with these arguments changed."""
        await self._say(Reply(answer="edit", arguments=arguments, note=note, digest=self._digest), by)

    async def reject(self, note: str, *, by: str | None = None) -> None:
        """Do not allow it; say why."""
        await self._say(Reply(answer="reject", note=note, digest=self._digest), by)

    async def happened(self, output: JsonValue = None, *, note: str | None = None, by: str | None = None) -> None:
        """The interrupted call did happen, with this result."""
        await self._say(Reply(answer="happened", output=output, note=note), by)

    async def not_happened(self, *, note: str | None = None, by: str | None = None) -> None:
        """It did not: call it again."""
        await self._say(Reply(answer="not_happened", note=note), by)

    async def retry(self, *, at: datetime | None = None, note: str | None = None, by: str | None = None) -> None:
        """Try the step again, but not before `at`."""
        moment = None if at is None else Instant(round(at.timestamp() * 1000))
        await self._say(Reply(answer="retry", at=moment, note=note), by)

    async def retry_with(self, arguments: JsonObject, *, note: str | None = None, by: str | None = None) -> None:
        """Try the step again with other arguments."""
        await self._say(Reply(answer="retry_with", arguments=arguments, note=note), by)

    async def supply_arguments(self, arguments: JsonObject, *, note: str | None = None, by: str | None = None) -> None:
        """Give the arguments that are missing."""
        await self._say(Reply(answer="supply_arguments", arguments=arguments, note=note), by)

    async def supply_output(self, output: JsonValue, *, note: str | None = None, by: str | None = None) -> None:
        """Give the step's result; no call is made."""
        await self._say(Reply(answer="supply_output", output=output, note=note), by)

    async def run_producer(self, *, note: str | None = None, by: str | None = None) -> None:
        """Carry out the step that should have given the missing output; then go on with this one."""
        await self._say(Reply(answer="run_producer", note=note), by)

    async def answer(self, value: JsonValue, *, note: str | None = None, by: str | None = None) -> None:
        """Answer the question; of an approval: give the step's result, and no call is made."""
        await self._say(Reply(answer="answer", value=value, note=note), by)

    async def raise_limit(self, max: float, *, note: str | None = None, by: str | None = None) -> None:
        """Allow more; times in seconds, sizes in bytes."""
        await self._say(Reply(answer="raise_limit", value=max, note=note), by)

    async def resume(self, *, note: str | None = None, by: str | None = None) -> None:
        """Go on."""
        await self._say(Reply(answer="resume", note=note), by)

    async def skip(self, *, note: str | None = None, by: str | None = None) -> None:
        """Leave this step out."""
        await self._say(Reply(answer="skip", note=note), by)

    async def fail(self, *, note: str | None = None, by: str | None = None) -> None:
        """Let the step fail."""
        await self._say(Reply(answer="fail", note=note), by)

    async def cancel(self, *, note: str | None = None, by: str | None = None) -> None:
        """Cancel the task."""
        await self._say(Reply(answer="cancel", note=note), by)

    @property
    def _digest(self) -> str | None:
        return None if self.call is None else self.call.input.digest

    async def _say(self, reply: Reply, by: str | None) -> None:
        await self._answer(self.id, reply, by)

    def __repr__(self) -> str:
        return f"<Pause {self.id} {self.type} {self.step or self.task}>"
