"""fold(state, event): what the journal means. The only place where an event changes a state.

A move that its table does not have is a broken journal, and said so. Everything here is a consequence of the event
alone: no clock, no look-up, so the same journal gives the same state on any machine.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from everstep.domain import events as e
from everstep.domain import fold_continued, fold_plan
from everstep.domain.detour import NO_DETOUR, Detour
from everstep.domain.failure import Category
from everstep.domain.fold_pauses import pause_answered, pause_expired, pause_expiring, pause_opened, pause_withdrawn
from everstep.domain.ids import Epoch, Instant, StepPath, TaskId, split_path
from everstep.domain.moves import BrokenJournal, end_step, end_task, move_step, move_task, skip_all, step_of
from everstep.domain.pauses import DurableWait
from everstep.domain.plan import OnError
from everstep.domain.states import ATTEMPT_MOVES, CHILD, EVENT, AttemptStatus, Phase, StepStatus, TaskStatus
from everstep.domain.task import Intent, OpenAttempt, TaskState

__all__ = ["BrokenJournal", "apply", "apply_intent", "fold", "step_of"]


def fold(state: TaskState | None, owner: str, event: e.Recorded) -> TaskState:
    """The state after one more event; the first event makes it."""
    if state is None:
        if not isinstance(event.body, e.TaskCreated):
            raise BrokenJournal(f"the journal of {event.task} begins with {event.body.TYPE}")
        state = fold_plan.begin(event, event.body, owner)
    elif event.seq != state.seq + 1:
        raise BrokenJournal(f"{event.task}: seq {event.seq} follows {state.seq}")
    else:
        apply(state, event.body, event.step, event.at)
        if isinstance(event.body, (e.PauseAnswered, e.PauseExpired)):
            state.closed[event.body.pause] = event
        if isinstance(event.body, (e.PauseAnswered, e.TaskReopened, e.TaskUpdated)):
            fold_plan.note_givers(state, event)
    state.seq = event.seq
    return state


def apply(state: TaskState, body: e.Body, step: StepPath | None, at: Instant) -> None:
    """Change the state by one event. Unknown events change nothing."""
    state.updated_at = at
    change = _CHANGES.get(type(body))
    if change is not None:
        change(state, body, step, at)


def _task_started(state: TaskState, body: e.TaskStarted, _step: StepPath | None, at: Instant) -> None:
    if state.status is not TaskStatus.CANCELLING:
        move_task(state, TaskStatus.RUNNING)
    if body.epoch <= state.epoch:
        raise BrokenJournal(f"{state.id}: epoch {body.epoch} follows {state.epoch}")
    state.epoch = body.epoch
    state.worker = body.worker
    state.claimed_at = at
    if state.paused_at is not None:
        _stood_still(state, at)
    if state.handover is not None or body.continued is not None:
        fold_continued.task_started(state, body)
    state.budget.begin(at)
    if state.started_at is None:
        state.started_at = at


def _task_pausing(state: TaskState, body: e.TaskPausing, _step: StepPath | None, _at: Instant) -> None:
    if state.status is not TaskStatus.PAUSING:  # asked again, more urgently
        move_task(state, TaskStatus.PAUSING)
    state.pausing = body


def _task_paused(state: TaskState, _body: e.TaskPaused, _step: StepPath | None, at: Instant) -> None:
    move_task(state, TaskStatus.PAUSED)
    state.worker = None
    state.pausing = None
    state.paused_at = at
    if state.handover is not None:
        state.handover.alone = False
    state.budget.rest(at)


def _task_resumed(state: TaskState, body: e.TaskResumed, _step: StepPath | None, at: Instant) -> None:
    move_task(state, body.to)
    if state.paused_at is not None:  # else it was lifted before it took effect
        _stood_still(state, at)


def _stood_still(state: TaskState, at: Instant) -> None:
    """Its clocks did, since it was paused."""
    assert state.paused_at is not None
    stood_still = at - state.paused_at
    state.paused_at = None
    state.budget.postponed(stood_still)
    for step in state.steps.values():
        if step.status is StepStatus.RUNNING and step.counted_from is not None:
            step.clock_from = Instant(step.counted_from + stood_still)


def _task_recovered(state: TaskState, body: e.TaskRecovered, _step: StepPath | None, at: Instant) -> None:
    state.budget.rest(at)
    if state.status is not TaskStatus.CANCELLING:
        move_task(state, TaskStatus.STALLED)
    state.epoch = Epoch(body.epoch)
    state.worker = None
    state.pausing = None
    state.recoveries = body.recoveries


def _task_cancelling(state: TaskState, _body: e.TaskCancelling, _step: StepPath | None, at: Instant) -> None:
    if state.status is TaskStatus.CANCELLING:
        state.hurried = True
        return
    move_task(state, TaskStatus.CANCELLING)
    state.cancelled_at = at


def _task_cancelled(state: TaskState, body: e.TaskCancelled, _step: StepPath | None, at: Instant) -> None:
    skip_all(state, body.skipped, e.SkipReason.TASK_CANCELLED, at)
    state.issues = body.issues
    end_task(state, TaskStatus.CANCELLED, at)


def _task_completed(state: TaskState, body: e.TaskCompleted, _step: StepPath | None, at: Instant) -> None:
    end_task(state, TaskStatus.COMPLETED, at)
    state.outcome = body.outcome
    state.outputs = body.outputs
    state.issues = body.issues


def _task_failed(state: TaskState, body: e.TaskFailed, _step: StepPath | None, at: Instant) -> None:
    skip_all(state, body.skipped, e.SkipReason.TASK_FAILED, at)
    end_task(state, TaskStatus.FAILED, at)
    state.error = body.error
    state.failing_step = body.step
    state.issues = body.issues


def _limit_near(state: TaskState, body: e.TaskLimitNear, _step: StepPath | None, _at: Instant) -> None:
    state.budget.announced(body.limit)


def _off_schedule(state: TaskState, body: e.Body, _step: StepPath | None, _at: Instant) -> None:
    state.announced[body.TYPE] = state.generation


def _step_started(state: TaskState, body: e.StepStarted, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    move_step(state, step, StepStatus.RUNNING)
    step.phase = Phase.VALIDATING
    step.started_at = step.started_at or at
    step.items = body.items


def _step_waiting(state: TaskState, body: e.StepWaiting, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    step.waits_since = at
    step.phase = Phase.WAITING_SLOT
    step.wait = DurableWait(kind=body.kind, detail=body.detail, until=body.until, output=body.output, ref=body.ref)
    step.retry_at = None
    state.timers.pop(path, None)
    if body.until is not None:
        state.timers[path] = body.until
    if body.kind == CHILD:
        step.child = state.children[path] = TaskId(body.detail)
    elif body.kind == EVENT:
        state.listening[path] = None


def apply_intent(state: TaskState, intent: Intent) -> None:
    """As `attempt.started`, straight from what the store has granted."""
    state.updated_at = intent.attempt.started_at
    _open(state, intent.step, intent.attempt)


def _attempt_started(state: TaskState, body: e.AttemptStarted, path: StepPath, at: Instant) -> None:
    attempt = OpenAttempt(
        number=body.attempt,
        epoch=body.epoch,
        worker=body.worker,
        tool=body.tool,
        tool_version=body.tool_version,
        effect=body.effect,
        idempotency_key=body.idempotency_key,
        input=body.input,
        started_at=at,
        approval=body.approval,
    )
    _open(state, path, attempt)


def _open(state: TaskState, path: StepPath, attempt: OpenAttempt) -> None:
    step = step_of(state, path)
    if step.attempt is not None or step.ended:
        raise BrokenJournal(f"step {path}: attempt {attempt.number} starts while {step.status}")
    move_step(state, step, StepStatus.RUNNING)
    step.phase = Phase.EXECUTING
    step.attempts = attempt.number
    step.last_effect = attempt.effect
    if not state.plan.finally_steps or not _is_final(state, path):
        state.budget.called()
    step.retry_at = step.wait = None
    if state.timers:
        state.timers.pop(path, None)
    if state.awaiting:
        state.awaiting.pop(path, None)
    step.pause = None
    step.started_at = step.started_at or attempt.started_at
    step.attempt = state.open[path] = attempt
    if attempt.approval is not None:
        step.approval = state.steps[StepPath(split_path(path)[0])].approval = attempt.approval


def _is_final(state: TaskState, path: StepPath) -> bool:
    """`finally` steps are outside the task's calls."""
    return any(path == last.id for last in state.plan.finally_steps)


def _attempt_ended(state: TaskState, body: e.AttemptEnded, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    if step.attempt is None or step.attempt.number != body.attempt:
        raise BrokenJournal(f"step {path}: attempt {body.attempt} ends, but is not open")
    to = _ENDS[type(body)]
    assert to in ATTEMPT_MOVES[AttemptStatus.STARTED]
    state.work_ms += at - step.attempt.started_at
    if body.usage is not None:
        state.budget.paid(body.usage, 0)
    step.attempt = None
    step.wait = None
    state.timers.pop(path, None)
    state.children.pop(path, None)
    state.listening.pop(path, None)
    del state.open[path]
    step.phase = Phase.VALIDATING
    step.error = body.error


def _retry_scheduled(state: TaskState, body: e.StepRetryScheduled, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    step.phase = Phase.RETRY_WAIT
    step.waits_since = at
    step.retry_at = body.error.retry_at
    if step.retry_at is not None:
        state.timers[path] = step.retry_at
    step.tries += body.new_key
    step.error = body.error
    if not body.counted:
        return
    detour = step.detour or NO_DETOUR
    match body.error.failure.category:
        case Category.PERMISSION:
            step.detour = replace(detour, refreshes=detour.refreshes + 1)
        case Category.RESOURCE:
            step.detour = replace(detour, degraded=body.degraded)
        case _:
            step.retries += 1


def _step_fallback(state: TaskState, body: e.StepFallback, path: StepPath, at: Instant) -> None:
    """Another tool, with a new key, retries and a clock of its own."""
    step = step_of(state, path)
    step.phase = Phase.VALIDATING
    step.detour = Detour(fallback=body.number)
    step.tries += 1
    step.retries = 0
    step.retry_at = step.wait = step.arguments = None
    step.clock_from = at
    state.timers.pop(path, None)


def _step_denied(state: TaskState, body: e.StepDenied, path: StepPath, at: Instant) -> None:
    """A fact for whoever audits; what becomes of the step is said by the next event."""


def _artifact_added(state: TaskState, body: e.ArtifactAdded, _path: StepPath, _at: Instant) -> None:
    """It counts as output; where it lies is for whoever reads the journal."""
    state.budget.paid(None, body.bytes)
    state.artifacts |= {body.digest}


def _step_completed(state: TaskState, body: e.StepCompleted, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    if step.attempt is not None:
        state.work_ms += at - step.attempt.started_at
    if step.status is StepStatus.PENDING:
        move_step(state, step, StepStatus.RUNNING)
    end_step(state, step, StepStatus.COMPLETED, at)
    state.budget.paid(body.usage, body.output.size_bytes)
    step.output = body.output
    step.via = body.via
    step.tool_used = body.tool_used
    step.error = None
    state.recoveries = 0


def _step_failed(state: TaskState, body: e.StepFailed, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    if step.status is StepStatus.PENDING:
        move_step(state, step, StepStatus.RUNNING)
    end_step(state, step, StepStatus.FAILED, at)
    step.error = body.error
    state.recoveries = 0
    name, index = split_path(path)
    spec = state.specs[name]
    if index is None and not _is_final(state, path) and state.on_error(spec) is not OnError.CONTINUE:
        state.failing = body.error
        state.failing_step = path


def _step_skipped(state: TaskState, body: e.StepSkipped, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    end_step(state, step, StepStatus.SKIPPED, at)
    step.skip_reason = body.reason
    step.upstream = body.upstream


_ENDS: Final[dict[type, AttemptStatus]] = {
    e.AttemptFailed: AttemptStatus.FAILED,
    e.AttemptTimedOut: AttemptStatus.TIMED_OUT,
    e.AttemptKilled: AttemptStatus.KILLED,
    e.AttemptAbandoned: AttemptStatus.ABANDONED,
}

_CHANGES: Final[dict[type, Callable[[TaskState, Any, Any, Instant], None]]] = {
    e.TaskStarted: _task_started,
    e.TaskPausing: _task_pausing,
    e.TaskPaused: _task_paused,
    e.TaskResumed: _task_resumed,
    e.TaskRecovered: _task_recovered,
    e.TaskCancelling: _task_cancelling,
    e.TaskCancelled: _task_cancelled,
    e.TaskCompleted: _task_completed,
    e.TaskFailed: _task_failed,
    e.TaskReopened: fold_plan.task_reopened,
    e.PlanRevised: fold_plan.plan_revised,
    e.TaskUpdated: fold_plan.task_updated,
    e.TaskLimitNear: _limit_near,
    e.TaskAheadOfSchedule: _off_schedule,
    e.TaskLate: _off_schedule,
    e.TaskEarlyCompletion: _off_schedule,
    e.TaskContinued: fold_continued.task_continued,
    e.StepStarted: _step_started,
    e.StepWaiting: _step_waiting,
    e.AttemptStarted: _attempt_started,
    e.AttemptFailed: _attempt_ended,
    e.AttemptTimedOut: _attempt_ended,
    e.AttemptKilled: _attempt_ended,
    e.AttemptAbandoned: _attempt_ended,
    e.StepRetryScheduled: _retry_scheduled,
    e.StepFallback: _step_fallback,
    e.StepDenied: _step_denied,
    e.StepCompleted: _step_completed,
    e.StepFailed: _step_failed,
    e.StepSkipped: _step_skipped,
    e.ArtifactAdded: _artifact_added,
    e.PauseOpened: pause_opened,
    e.PauseAnswered: pause_answered,
    e.PauseExpiring: pause_expiring,
    e.PauseExpired: pause_expired,
    e.PauseWithdrawn: pause_withdrawn,
}
