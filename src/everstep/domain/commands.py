"""What a command means for a state: events, or a typed conflict that names the state. Pure.

No events means: it already holds.
"""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.approval import Names, rejected
from everstep.domain.consequence import spec_of
from everstep.domain.detour import Detour, next_fallback
from everstep.domain.errors import Conflict, Validation
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Digest, Instant, PauseId, StepPath
from everstep.domain.pauses import (
    FOR_PRODUCER,
    LIFTED_BY_RESUME,
    Pause,
    UnresolvedDependency,
)
from everstep.domain.record import record
from everstep.domain.states import PUT_BACK, TERMINAL, TaskStatus
from everstep.domain.task import TaskState, unfinished
from everstep.domain.values import JsonObject, JsonValue, Sealed

Drafts = tuple[e.Draft, ...]


def asked_pause(state: TaskState) -> PauseId | None:
    """The pause that `resume` would lift."""
    return next((pause.id for pause in state.pauses.values() if pause.type in LIFTED_BY_RESUME), None)


def resume_task(state: TaskState, note: str | None) -> Drafts:
    """Lift the pause someone asked for; the steps' own pauses stay, and so does a limit that is reached."""
    if state.status in TERMINAL or state.status is TaskStatus.CANCELLING:
        raise illegal(state, "resume")
    asked = state.pauses.get(asked_pause(state) or PauseId(""))
    if asked is None:
        if state.pauses and state.status is TaskStatus.PAUSED:
            oldest = next(iter(state.pauses.values()))
            raise Conflict(
                f"the task waits for an answer: {oldest.title}",
                code="answer_needed",
                what_to_do=f"everstep answer {oldest.id}",
                details={"pause": oldest.id},
            )
        return ()
    return lift(state, asked, e.Draft(body=e.PauseAnswered(pause=asked.id, answer="resume", note=note)), note)


def lift(state: TaskState, asked: Pause, closing: e.Draft, note: str | None) -> Drafts:
    """A pause of the whole task ends, by a word or by its time; the task goes on unless another one keeps it."""
    kept = any(pause.of_the_task for pause in state.pauses.values() if pause is not asked)
    if state.status is not TaskStatus.PAUSED or kept:
        return (closing,)
    # Beside the steps that wait for an answer another one may be ready; if none is, the next lap says so.
    return (closing, e.Draft(body=e.TaskResumed(pause=asked.id, to=TaskStatus.QUEUED, note=note)))


def cancel_task(state: TaskState, note: str | None, *, reason: str = "requested") -> Drafts:
    """End on request: at once where nothing is in flight and nothing has to be tidied up. Twice: without `finally`."""
    if state.status is TaskStatus.CANCELLED or state.hurried:
        return ()
    if state.status is TaskStatus.CANCELLING:
        tidying = any(not state.steps[StepPath(spec.id)].ended for spec in state.plan.finally_steps)
        return (e.Draft(body=e.TaskCancelling(note=note)),) if tidying else ()
    if state.status in TERMINAL:
        raise illegal(state, "cancel")
    tidy = state.plan.finally_steps and any(step.attempts for step in state.steps.values())
    if state.status in (TaskStatus.RUNNING, TaskStatus.PAUSING) or state.in_flight or state.children or tidy:
        return (e.Draft(body=e.TaskCancelling(note=note)),)
    withdrawn = [
        e.Draft(body=e.PauseWithdrawn(pause=pause.id, why="the task was cancelled"), step=pause.step)
        for pause in state.pauses.values()
    ]
    return (*withdrawn, e.Draft(body=e.TaskCancelled(reason=reason, skipped=unfinished(state))))


@record
class Reply:
    """An answer as it comes in, unchecked."""

    answer: str
    note: str | None = None
    arguments: JsonObject | None = None
    output: JsonValue = None
    value: JsonValue = None
    digest: str | None = None
    """Of the call that the approver has seen."""
    at: Instant | None = None
    """A retry not before this time."""
    tool: str | None = None
    """A retry with this one of the step's fallbacks."""


@record
class Answer:
    """What somebody says to a pause; the values are checked before they come here."""

    answer: str
    note: str | None = None
    arguments: JsonObject | None = None
    output: Sealed | None = None
    value: JsonValue = None
    digest: Digest | None = None
    diff: tuple[JsonObject, ...] = ()
    names: Names = Names(error="", pause=PauseId(""))
    at: Instant | None = None
    tool: str | None = None


def answer_pause(state: TaskState, pause: Pause, given: Answer) -> Drafts:
    """What an answer makes of its step and its task."""
    if given.answer not in pause.answers:
        allowed = ", ".join(pause.answers)
        raise Validation(
            f"'{given.answer}' is no answer to {pause.type}",
            code="answer_invalid",
            what_to_do=f"answer one of: {allowed}",
        )
    if given.answer == "resume":
        return resume_task(state, given.note)
    body = e.PauseAnswered(
        pause=pause.id,
        answer=given.answer,
        note=given.note,
        arguments=given.arguments,
        output=None if given.answer == "answer" else given.output,
        value=given.value,
        digest=given.digest,
        diff=given.diff,
    )
    answered = e.Draft(body=body, step=pause.step)
    if pause.of_the_task and given.answer in ("raise_limit", "retry"):
        return lift(state, pause, answered, given.note)
    if given.answer == "cancel":
        rest = [draft for draft in cancel_task(state, given.note) if not _withdraws(draft, pause.id)]
        return (answered, *rest)
    assert pause.step is not None
    drafts = (answered, *_settle_step(state, pause, given, _answered_for(state, pause, given)))
    asks_on = any(isinstance(draft.body, e.PauseOpened) for draft in drafts)
    if state.status is TaskStatus.PAUSED and not state.held_back and not asks_on:
        resumed = e.TaskResumed(pause=pause.id, to=TaskStatus.QUEUED, note=given.note)
        return (*drafts, e.Draft(body=resumed))
    return drafts


def puts_back(drafts: Drafts) -> bool:
    """Whether an ended step may be pending again after this."""
    return any(isinstance(one.body, e.PauseAnswered) and one.body.answer in FOR_PRODUCER for one in drafts)


def ends_wait(drafts: Drafts) -> bool:
    """Whether a step that waits completes by this: its own time may be up in the same moment."""
    return any(isinstance(one.body, e.StepCompleted) and one.body.via == "signal" for one in drafts)


def said_once(drafts: Drafts) -> bool:
    """Whether it announces something that another engine may be announcing in the same moment."""
    return any(isinstance(one.body, e.TaskAheadOfSchedule | e.TaskLate | e.TaskEarlyCompletion) for one in drafts)


def _withdraws(draft: e.Draft, pause: PauseId) -> bool:
    return isinstance(draft.body, e.PauseWithdrawn) and draft.body.pause == pause


def _answered_for(state: TaskState, pause: Pause, given: Answer) -> StepPath:
    """The step whose outcome an answer gives: the asking one, or the producer it lacks."""
    assert pause.step is not None
    if not isinstance(pause.reason, UnresolvedDependency) or given.answer != "supply_output":
        return pause.step
    producer = state.steps[pause.reason.producing_step]
    if producer.status not in PUT_BACK:
        raise Conflict(
            f"step {producer.path} is {producer.status} meanwhile",
            what_to_do="answer `run_producer`: it goes on with what is there",
            details={"step": producer.path, "status": producer.status.value},
        )
    return producer.path


def _settle_step(state: TaskState, pause: Pause, given: Answer, path: StepPath) -> Drafts:
    """The outcome an answer gives a step; none where the step is tried again."""
    match given.answer:
        case "reject":
            return rejected(state, pause, given.note or "", given.names)
        case "happened" | "supply_output" | "answer" if given.output is not None:
            done = e.StepCompleted(
                attempt=None,
                output=given.output,
                summary=given.note,
                via="supplied",
                tool_used=None,
                duration_s=0.0,
            )
            return (e.Draft(body=done, step=path),)
        case "retry":
            return (*_switched(state, given, path), *_put_off(state, given, path))
        case "skip":
            return (e.Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=path),)
        case "fail":
            return (e.Draft(body=e.StepFailed(attempt=None, error=_said_so(state, path), duration_s=0.0), step=path),)
        case _:
            return ()


def _switched(state: TaskState, given: Answer, path: StepPath) -> Drafts:
    """A retry with a tool that the plan has as a fallback, if the effect rule lets it."""
    if given.tool is None:
        return ()
    spec, step = spec_of(state, path), state.steps[path]
    for number, other in enumerate(spec.fallback, start=1):
        before = Detour(fallback=number - 1)
        failure = step.error.failure if step.error else None
        if other.tool == given.tool and next_fallback(spec, before, failure, step.last_effect):
            body = e.StepFallback(tool_requested=spec.tool, tool_used=other.tool, reason="requested", number=number)
            return (e.Draft(body=body, step=path),)
    raise Validation(
        f"step {path} cannot go on with '{given.tool}'",
        code="answer_invalid",
        what_to_do="name one of its fallbacks; after a call that may have acted none is left",
    )


def _put_off(state: TaskState, given: Answer, path: StepPath) -> Drafts:
    """A retry at a later time, which uses up none of the step's own."""
    if given.at is None:
        return ()
    error = replace(_said_so(state, path), retry_at=given.at)
    body = e.StepRetryScheduled(attempt=state.steps[path].attempts, error=error, new_key=False, counted=False)
    return (e.Draft(body=body, step=path),)


def _said_so(state: TaskState, path: StepPath) -> e.ErrorRecord:
    known = state.steps[path].error
    if known is not None:
        return known
    failure = Failure(
        code="answered_fail",
        category=Category.LOGIC,
        message="somebody answered: fail",
        what_to_do="retry the task, or fork it",
        effect_state=EffectState.NONE,
    )
    return e.ErrorRecord(id="", failure=failure)


def illegal(state: TaskState, wanted: str) -> Conflict:
    """The typed refusal of a move the table does not have."""
    return Conflict(f"cannot {wanted} a task that is {state.status}", details={"status": state.status.value})
