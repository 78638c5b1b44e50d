"""What a command means for a state: events, or a typed conflict that names the state. Pure.

No events means: it already holds.
"""

from dataclasses import replace
from typing import Final

from everstep.domain import events as e
from everstep.domain.effects import REPEATABLE
from everstep.domain.errors import Conflict, Validation
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, PauseId, StepPath
from everstep.domain.pauses import (
    ANSWERS,
    FOR_PRODUCER,
    LIFTED_BY_RESUME,
    OF_THE_TASK,
    Pause,
    PauseType,
    UnresolvedDependency,
    UserRequested,
)
from everstep.domain.queue import PRIORITY_MAX
from everstep.domain.record import record
from everstep.domain.states import PUT_BACK, TERMINAL, TaskStatus
from everstep.domain.task import TaskState, unfinished
from everstep.domain.values import JsonObject, JsonValue, Sealed

Drafts = tuple[e.Draft, ...]
GRACEFUL: Final = "graceful"
IMMEDIATE: Final = "immediate"
MODES: Final = (GRACEFUL, IMMEDIATE)


@record
class PauseWish:
    """A pause somebody asks for: `graceful`, or `immediate`, which cuts off what may be called again."""

    id: PauseId
    by: str
    note: str | None = None
    mode: str = GRACEFUL


def pause_task(state: TaskState, wish: PauseWish) -> Drafts:
    """Ask for a pause: at once where nothing is in flight, else at the next safe point. Asking twice is asking once."""
    if wish.mode not in MODES:
        raise Validation(f"'mode' must be one of {', '.join(MODES)}")
    if state.status in TERMINAL or state.status is TaskStatus.CANCELLING:
        raise illegal(state, "pause")
    asked = next((pause for pause in state.pauses.values() if pause.type is PauseType.USER_REQUESTED), None)
    opened: Drafts = ()
    if asked is None:
        reason = UserRequested(by=wish.by, note=wish.note)
        asked = Pause(id=wish.id, step=None, reason=reason, title="Paused", why=wish.note or f"{wish.by} asked for it")
        opened = (e.Draft(body=e.PauseOpened(pause=asked)),)
    match state.status:
        case TaskStatus.RUNNING if opened or (wish.mode == IMMEDIATE and state.in_flight):
            return (*opened, _pausing(state, asked.id, wish.mode))
        case TaskStatus.PAUSING if wish.mode == IMMEDIATE and not (state.pausing and state.pausing.mode == wish.mode):
            return (*opened, _pausing(state, asked.id, wish.mode))
        case TaskStatus.QUEUED | TaskStatus.STALLED if opened and not state.in_flight:
            return (*opened, e.Draft(body=e.TaskPaused(pause=asked.id, reason_type=asked.type)))
        case _:  # paused, or on its way there; or stalled in a call, which has to be judged first
            return opened


def _pausing(state: TaskState, pause: PauseId, mode: str) -> e.Draft:
    """What has to be waited for, and so in which way the pause really comes."""
    ends = () if mode == GRACEFUL else repeatable(state)
    waits_for = tuple(path for path in state.in_flight if path not in ends)
    mode_used = GRACEFUL if waits_for else mode
    return e.Draft(body=e.TaskPausing(pause=pause, mode=mode, mode_used=mode_used, waits_for=waits_for))


def repeatable(state: TaskState) -> tuple[StepPath, ...]:
    """Steps in flight whose call may be cut off and made again."""
    return tuple(path for path in state.in_flight if state.open[path].effect in REPEATABLE)


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
    lifted = e.Draft(body=e.PauseAnswered(pause=asked.id, answer="resume", note=note))
    return (lifted, *_go_on(state, asked, note))


def _go_on(state: TaskState, lifted: Pause, note: str | None) -> Drafts:
    """Back into the queue, once a pause of the whole task is lifted, unless another one keeps it.

    Beside the steps that wait for an answer another one may be ready; if none is, the next lap says so.
    """
    kept = any(pause.type in OF_THE_TASK for pause in state.pauses.values() if pause is not lifted)
    if state.status is not TaskStatus.PAUSED or kept:
        return ()
    return (e.Draft(body=e.TaskResumed(pause=lifted.id, to=TaskStatus.QUEUED, note=note)),)


def update_task(state: TaskState, wanted: e.TaskUpdated) -> Drafts:
    """Change title, labels or priority; what already holds is no change."""
    if wanted.priority is not None and not 0 <= wanted.priority <= PRIORITY_MAX:
        raise Validation(f"priority {wanted.priority} is not within 0 and {PRIORITY_MAX}")
    if wanted.title is not None and not wanted.title.strip():
        raise Validation("a title must not be empty")
    changes = e.TaskUpdated(
        title=None if wanted.title == state.title else wanted.title,
        labels=None if wanted.labels == state.labels else wanted.labels,
        priority=None if wanted.priority == state.priority else wanted.priority,
    )
    if changes.priority is not None and state.status in TERMINAL:
        raise Conflict(f"the task is {state.status}: it waits for nothing any more", code="task_terminal")
    return (e.Draft(body=changes),) if changes != e.TaskUpdated() else ()


def cancel_task(state: TaskState, note: str | None) -> Drafts:
    """End on request: at once where nothing is in flight and nothing has to be tidied up."""
    if state.status is TaskStatus.CANCELLED or state.status is TaskStatus.CANCELLING:
        return ()
    if state.status in TERMINAL:
        raise illegal(state, "cancel")
    tidy = state.plan.finally_steps and any(step.attempts for step in state.steps.values())
    if state.status in (TaskStatus.RUNNING, TaskStatus.PAUSING) or state.open or tidy:
        return (e.Draft(body=e.TaskCancelling(note=note)),)
    withdrawn = [
        e.Draft(body=e.PauseWithdrawn(pause=pause.id, why="the task was cancelled"), step=pause.step)
        for pause in state.pauses.values()
    ]
    return (*withdrawn, e.Draft(body=e.TaskCancelled(reason="requested", skipped=unfinished(state))))


@record
class Reply:
    """An answer as it comes in, unchecked."""

    answer: str
    note: str | None = None
    arguments: JsonObject | None = None
    output: JsonValue = None
    value: JsonValue = None
    at: Instant | None = None
    """With `retry`: not before this time."""


@record
class Answer:
    """What somebody says to a pause; the values are checked before they come here."""

    answer: str
    note: str | None = None
    arguments: JsonObject | None = None
    output: Sealed | None = None
    value: JsonValue = None
    at: Instant | None = None


def answer_pause(state: TaskState, pause: Pause, given: Answer) -> Drafts:
    """What an answer makes of its step and its task."""
    if given.answer not in ANSWERS[pause.type]:
        allowed = ", ".join(ANSWERS[pause.type])
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
        output=given.output,
        value=given.value,
    )
    answered = e.Draft(body=body, step=pause.step)
    if given.answer == "raise_limit":
        return (answered, *_go_on(state, pause, given.note))
    if given.answer == "cancel":
        rest = [draft for draft in cancel_task(state, given.note) if not _withdraws(draft, pause.id)]
        return (answered, *rest)
    assert pause.step is not None
    drafts = (answered, *_settle_step(state, given, _answered_for(state, pause, given)))
    if state.status is TaskStatus.PAUSED and not state.held_back:
        resumed = e.TaskResumed(pause=pause.id, to=TaskStatus.QUEUED, note=given.note)
        return (*drafts, e.Draft(body=resumed))
    return drafts


def puts_back(drafts: Drafts) -> bool:
    """Whether an ended step may be pending again after this."""
    return any(isinstance(one.body, e.PauseAnswered) and one.body.answer in FOR_PRODUCER for one in drafts)


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


def _settle_step(state: TaskState, given: Answer, path: StepPath) -> Drafts:
    """The outcome an answer gives a step; none where the step is tried again."""
    match given.answer:
        case "happened" | "supply_output":
            assert given.output is not None
            done = e.StepCompleted(
                attempt=None,
                output=given.output,
                summary=given.note,
                via="supplied",
                tool_used=None,
                duration_s=0.0,
            )
            return (e.Draft(body=done, step=path),)
        case "retry" if given.at is not None:
            error = replace(_said_so(state, path), retry_at=given.at)
            later = e.StepRetryScheduled(attempt=state.steps[path].attempts, error=error, new_key=False, counted=False)
            return (e.Draft(body=later, step=path),)
        case "skip":
            return (e.Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=path),)
        case "fail":
            return (e.Draft(body=e.StepFailed(attempt=None, error=_said_so(state, path), duration_s=0.0), step=path),)
        case _:
            return ()


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
