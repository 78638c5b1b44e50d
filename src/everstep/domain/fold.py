"""fold(state, event): what the journal means. The only place where an event changes a state.

A move that its table does not have is a broken journal, and said so. Everything here is a consequence of the event
alone: no clock, no look-up, so the same journal gives the same state on any machine.
"""

from collections.abc import Callable
from typing import Any, Final

from everstep.domain import events as e
from everstep.domain.again import run_producer
from everstep.domain.ids import Epoch, Instant, StepPath, WorkerId, split_path
from everstep.domain.limits import budget_of
from everstep.domain.moving import (
    BrokenJournal,
    begin_step,
    end_step,
    end_task,
    move_step,
    move_task,
    skip_all,
    step_of,
)
from everstep.domain.pauses import (
    FOR_PRODUCER,
    OF_THE_TASK,
    InputRequired,
    LimitReached,
    PauseType,
    UnresolvedDependency,
)
from everstep.domain.plan import OnError
from everstep.domain.states import (
    ATTEMPT_MOVES,
    AttemptStatus,
    Phase,
    StepStatus,
    TaskStatus,
)
from everstep.domain.task import DurableWait, Intent, OpenAttempt, StepState, TaskState


def fold(state: TaskState | None, owner: str, event: e.Recorded) -> TaskState:
    """The state after one more event; the first event makes it."""
    if state is None:
        if not isinstance(event.body, e.TaskCreated):
            raise BrokenJournal(f"the journal of {event.task} begins with {event.body.TYPE}")
        state = begin(event, event.body, owner)
    elif event.seq != state.seq + 1:
        raise BrokenJournal(f"{event.task}: seq {event.seq} follows {state.seq}")
    else:
        apply(state, event.body, event.step, event.at)
    state.seq = event.seq
    return state


def begin(event: e.Recorded, body: e.TaskCreated, owner: str) -> TaskState:
    """A task as it is accepted."""
    state = TaskState(
        id=event.task,
        owner=owner,
        plan=body.plan,
        plan_digest=body.plan_digest,
        trusted=body.trusted,
        key=body.key,
        title=body.title,
        inputs=body.inputs,
        labels=body.labels,
        priority=body.priority,
        workspace=body.workspace,
        pause_after=body.pause_after,
        created_at=event.at,
        created_by=event.actor,
        updated_at=event.at,
        budget=budget_of(body.limits, body.deadline),
    )
    for spec in (*body.plan.steps, *body.plan.finally_steps):
        state.specs[spec.id] = spec
        path = StepPath(spec.id)
        state.steps[path] = StepState(path=path)
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
    state.still_since = at
    state.budget.rest(at)


def _task_resumed(state: TaskState, body: e.TaskResumed, _step: StepPath | None, at: Instant) -> None:
    move_task(state, body.to)
    if state.still_since is not None:
        state.still_ms += at - state.still_since
        state.budget.postponed(at - state.still_since)
        state.still_since = None


def _task_recovered(state: TaskState, body: e.TaskRecovered, _step: StepPath | None, at: Instant) -> None:
    state.budget.rest(at)
    if state.status is not TaskStatus.CANCELLING:
        move_task(state, TaskStatus.STALLED)
    state.epoch = Epoch(body.epoch)
    state.worker = None
    state.pausing = None
    state.recoveries = body.recoveries


def _task_cancelling(state: TaskState, _body: e.TaskCancelling, _step: StepPath | None, at: Instant) -> None:
    move_task(state, TaskStatus.CANCELLING)
    state.cancelled_at = state.cancelled_at or at


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
    state.issues = body.issues


def _task_updated(state: TaskState, body: e.TaskUpdated, _step: StepPath | None, _at: Instant) -> None:
    state.title = body.title if body.title is not None else state.title
    state.labels = body.labels if body.labels is not None else state.labels
    state.priority = body.priority if body.priority is not None else state.priority


def _limit_near(state: TaskState, body: e.TaskLimitNear, _step: StepPath | None, _at: Instant) -> None:
    state.budget.announced(body.limit)


def _step_started(state: TaskState, body: e.StepStarted, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    move_step(state, step, StepStatus.RUNNING)
    step.phase = Phase.VALIDATING
    begin_step(state, step, at)
    step.items = body.items


def _step_waiting(state: TaskState, body: e.StepWaiting, path: StepPath, _at: Instant) -> None:
    step = step_of(state, path)
    step.phase = Phase.WAITING_SLOT
    state.timers.pop(path, None)
    step.wait = DurableWait(kind=body.kind, detail=body.detail, until=body.until, output=body.output)
    if body.until is not None:
        state.timers[path] = body.until


def apply_intent(state: TaskState, intent: Intent, worker: WorkerId, at: Instant) -> None:
    """As `attempt.started`, straight from what the store has granted."""
    state.updated_at = at
    _open(state, intent.step, intent, worker=worker, at=at)


def _attempt_started(state: TaskState, body: e.AttemptStarted, path: StepPath, at: Instant) -> None:
    _open(state, path, body, worker=body.worker, at=at)


def _open(state: TaskState, path: StepPath, call: e.AttemptStarted | Intent, *, worker: WorkerId, at: Instant) -> None:
    step = step_of(state, path)
    if step.attempt is not None or step.ended:
        raise BrokenJournal(f"step {path}: attempt {call.attempt} starts while {step.status}")
    move_step(state, step, StepStatus.RUNNING)
    step.phase = Phase.EXECUTING
    step.attempts = call.attempt
    step.last_effect = call.effect
    if not state.plan.finally_steps or not _is_final(state, path):
        state.budget.called()
    step.retry_at = step.wait = None
    if state.timers:
        state.timers.pop(path, None)
    if state.awaiting:
        state.awaiting.pop(path, None)
    step.pause = None
    begin_step(state, step, at)
    step.attempt = state.open[path] = OpenAttempt(
        number=call.attempt,
        epoch=call.epoch,
        worker=worker,
        tool=call.tool,
        tool_version=call.tool_version,
        effect=call.effect,
        idempotency_key=call.idempotency_key,
        input=call.input,
        started_at=at,
    )


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
    del state.open[path]
    step.phase = Phase.VALIDATING
    step.error = body.error


def _retry_scheduled(state: TaskState, body: e.StepRetryScheduled, path: StepPath, _at: Instant) -> None:
    step = step_of(state, path)
    step.phase = Phase.RETRY_WAIT
    step.retry_at = body.error.retry_at
    if step.retry_at is not None:
        state.timers[path] = step.retry_at
    step.tries += body.new_key
    step.retries += body.counted
    step.error = body.error


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
    if index is None and not _is_final(state, path) and state.plan.on_error(spec) is not OnError.CONTINUE:
        state.failing = body.error


def _step_skipped(state: TaskState, body: e.StepSkipped, path: StepPath, at: Instant) -> None:
    step = step_of(state, path)
    end_step(state, step, StepStatus.SKIPPED, at)
    step.skip_reason = body.reason
    step.upstream = body.upstream


def _pause_opened(state: TaskState, body: e.PauseOpened, path: StepPath | None, _at: Instant) -> None:
    state.pauses[body.pause.id] = body.pause
    if body.pause.type is PauseType.USER_REQUESTED:
        state.pause_after = None
    if path is not None:
        step = step_of(state, path)
        if step.status is StepStatus.PENDING:
            move_step(state, step, StepStatus.RUNNING)
        move_step(state, step, StepStatus.PAUSED)
        step.pause = body.pause.id
        state.awaiting.pop(path, None)


_AGAIN: Final = frozenset({"supply_arguments", "retry", "retry_with", "not_happened", "answer"})
"""Answers after which the step is tried again."""
_NEW_KEY: Final = frozenset({"retry", "retry_with"})
"""Answers that begin a new logical try."""


def _pause_answered(state: TaskState, body: e.PauseAnswered, path: StepPath | None, _at: Instant) -> None:
    pause = state.pauses.pop(body.pause)
    if state.status is TaskStatus.PAUSING and pause.type in OF_THE_TASK:
        state.lifted = pause
    if isinstance(pause.reason, LimitReached) and isinstance(body.value, int | float):
        state.budget.raised(pause.reason.limit, body.value)
    needs = pause.reason if isinstance(pause.reason, UnresolvedDependency) else None
    if path is None or (needs is None and body.answer not in _AGAIN):
        return
    if needs is not None:
        if body.answer not in FOR_PRODUCER:
            return
        run_producer(state, needs.producing_step, path)
    step = step_of(state, path)
    move_step(state, step, StepStatus.RUNNING)
    step.phase = Phase.VALIDATING
    step.pause = None
    if body.answer in _NEW_KEY:
        step.tries += 1
        step.retries = 0
    if body.arguments is not None:
        step.arguments = {**(step.arguments or {}), **body.arguments}
    if isinstance(pause.reason, InputRequired):
        step.answer = body.value


def _pause_withdrawn(state: TaskState, body: e.PauseWithdrawn, _path: StepPath | None, _at: Instant) -> None:
    state.pauses.pop(body.pause, None)


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
    e.TaskUpdated: _task_updated,
    e.TaskLimitNear: _limit_near,
    e.StepStarted: _step_started,
    e.StepWaiting: _step_waiting,
    e.AttemptStarted: _attempt_started,
    e.AttemptFailed: _attempt_ended,
    e.AttemptTimedOut: _attempt_ended,
    e.AttemptKilled: _attempt_ended,
    e.AttemptAbandoned: _attempt_ended,
    e.StepRetryScheduled: _retry_scheduled,
    e.StepCompleted: _step_completed,
    e.StepFailed: _step_failed,
    e.StepSkipped: _step_skipped,
    e.PauseOpened: _pause_opened,
    e.PauseAnswered: _pause_answered,
    e.PauseWithdrawn: _pause_withdrawn,
}
