"""decide(state, path, outcome, …) -> events: what follows from one attempt's end.

Retry, hand over, skip or fail: a pure function, so every rule can be tested without waiting. It says what happened
to the step; what starts next is `graph`'s and `propose`'s business.
"""

from typing import Final, assert_never

from everstep.domain import events as e
from everstep.domain.effects import Resolution, resolve_unclear
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, PauseId, StepPath, split_path
from everstep.domain.outcome import Asked, Failed, Lost, Outcome, Probe, Succeeded, Waits
from everstep.domain.pauses import InputRequired, Pause, Reason, ToolErrorPause, UncertainOutcome
from everstep.domain.plan import OnError, StepSpec
from everstep.domain.policy import RetryPolicy, backoff_ms, may_retry, out_of_time
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.task import OpenAttempt, StepState, TaskState, began_at


@record
class Chance:
    """What a decision may need drawn: handed in, so that the decision stays a function."""

    jitter: float = 0.0
    pause_id: PauseId = PauseId("")
    error_id: str = ""


NO_CHANCE = Chance()
"""Enough for a success."""

WORKER_LOST = Failure(
    code="worker_lost",
    category=Category.TRANSIENT,
    message="the worker died, or lost its lease, inside the call",
    what_to_do="the effect rule decides: call again, look, or ask",
    effect_state=EffectState.UNKNOWN,
)


NEVER_CALLED: Final = Failed(
    failure=Failure(
        code="not_called",
        category=Category.TRANSIENT,
        message="the intent was written down, but the call was never made",
        what_to_do="nothing: it is made now",
        effect_state=EffectState.NONE,
    ),
    ended="abandoned",
    called=False,
)


@record
class Ended:
    """One attempt's end, with all that deciding about it may use."""

    path: StepPath
    outcome: Outcome
    retry: RetryPolicy
    chance: Chance = NO_CHANCE


def decide(state: TaskState, ended: Ended, at: Instant) -> tuple[e.Draft, ...]:
    """The events that one attempt's end causes; none if that attempt is no longer open."""
    step = state.steps[ended.path]
    attempt = step.attempt
    if attempt is None:
        return ()
    outcome = ended.outcome
    match outcome:
        case Succeeded():
            return (_completed(step, attempt, outcome, at),)
        case Waits():
            wait = e.StepWaiting(kind="time", detail=attempt.tool, until=outcome.until, output=outcome.output)
            return (e.Draft(step=ended.path, body=wait),)
        case Asked():
            return _asked(state, ended, attempt, outcome)
        case Failed():
            return _failed(state, ended, outcome, at)
        case Lost():
            return _lost(state, ended, outcome, at)
        case _:
            assert_never(outcome)


def _completed(step: StepState, attempt: OpenAttempt, outcome: Succeeded, at: Instant) -> e.Draft:
    body = e.StepCompleted(
        attempt=attempt.number,
        output=outcome.output,
        summary=outcome.summary,
        via="tool",
        tool_used=attempt.tool,
        duration_s=(at - (step.started_at or at)) / 1000,
        wall_s=outcome.wall_s,
        usage=outcome.usage,
    )
    return e.Draft(step=step.path, body=body)


def _asked(state: TaskState, ended: Ended, attempt: OpenAttempt, asked: Asked) -> tuple[e.Draft, ...]:
    failure = Failure(
        code="needs_input",
        category=Category.LOGIC,
        message=asked.question,
        what_to_do="answer the question",
        effect_state=EffectState.NONE,
    )
    reason = InputRequired(blocked_step=ended.path, question=asked.question, schema=asked.schema)
    error = e.ErrorRecord(id=ended.chance.error_id, failure=failure, attempt=attempt.number)
    closed = e.AttemptAbandoned(
        attempt=attempt.number,
        error=error,
        effect_state=EffectState.NONE,
        called=True,
        duration_s=0.0,
        usage=asked.usage,
    )
    opened = _pause(state, ended, reason, title=asked.question, why="the step asks before it goes on")
    return (e.Draft(step=ended.path, body=closed), opened)


_ENDED_AS: Final[dict[str, type[e.AttemptFailed | e.AttemptTimedOut | e.AttemptKilled | e.AttemptAbandoned]]] = {
    "failed": e.AttemptFailed,
    "timed_out": e.AttemptTimedOut,
    "killed": e.AttemptKilled,
    "abandoned": e.AttemptAbandoned,
}


def _failed(state: TaskState, ended: Ended, outcome: Failed, at: Instant) -> tuple[e.Draft, ...]:
    step = state.steps[ended.path]
    assert step.attempt is not None
    error = _error(ended, step, outcome.failure)
    closed = _ENDED_AS[outcome.ended](
        attempt=step.attempt.number,
        error=error,
        effect_state=outcome.failure.effect_state,
        called=outcome.called,
        duration_s=(at - step.attempt.started_at) / 1000,
        usage=outcome.usage,
    )
    first = (e.Draft(step=ended.path, body=closed), *_probed(ended.path, step, outcome.probe))
    if not outcome.called or state.status is TaskStatus.CANCELLING:
        return first
    if outcome.failure.effect_state is EffectState.UNKNOWN:
        match _unclear(state, step, outcome.probe):
            case Resolution.DONE:
                return (*first, _done_by_probe(step, outcome.probe, at))
            case Resolution.ASK:
                return (*first, _uncertain(state, ended, step.attempt))
            case Resolution.FAIL:
                return (*first, *_give_up(state, ended, error, at))
            case Resolution.CALL_AGAIN:
                return (*first, *_again(state, ended, outcome.failure, at))
    if outcome.failure.effect_state is EffectState.MADE:
        return (*first, *_give_up(state, ended, error, at))
    return (*first, *_again(state, ended, outcome.failure, at))


def _lost(state: TaskState, ended: Ended, lost: Lost, at: Instant) -> tuple[e.Draft, ...]:
    step = state.steps[ended.path]
    assert step.attempt is not None
    probe = lost.probe
    error = _error(ended, step, lost.why or WORKER_LOST)
    closed = _ENDED_AS[lost.ended](
        attempt=step.attempt.number,
        error=error,
        effect_state=EffectState.UNKNOWN,
        called=True,
        duration_s=(at - step.attempt.started_at) / 1000,
    )
    first = (e.Draft(step=ended.path, body=closed), *_probed(ended.path, step, probe))
    if state.status is TaskStatus.CANCELLING:
        return first
    match _unclear(state, step, probe):
        case Resolution.CALL_AGAIN:
            return first  # the step is ready again, with the same key; a crash uses up no retry
        case Resolution.DONE:
            return (*first, _done_by_probe(step, probe, at))
        case Resolution.ASK:
            return (*first, _uncertain(state, ended, step.attempt))
        case Resolution.FAIL:
            return (*first, *_give_up(state, ended, error, at))


def _unclear(state: TaskState, step: StepState, probe: Probe | None) -> Resolution:
    assert step.attempt is not None
    spec = spec_of(state, step.path)
    return resolve_unclear(step.attempt.effect, probe, state.plan.on_uncertain(spec))


def _again(state: TaskState, ended: Ended, failure: Failure, at: Instant) -> tuple[e.Draft, ...]:
    """A retry if the budget has one: with a new key, unless the call may have happened."""
    step = state.steps[ended.path]
    error = _error(ended, step, failure)
    if not may_retry(ended.retry, failure, step.retries):
        return _give_up(state, ended, error, at)
    next_at = Instant(at + backoff_ms(ended.retry, failure, step.retries, ended.chance.jitter))
    if out_of_time(ended.retry, began_at(state, step), next_at):
        return _give_up(state, ended, error, at)
    scheduled = e.ErrorRecord(
        id=error.id,
        failure=failure,
        attempt=error.attempt,
        retries=step.retries + 1,
        retries_max=ended.retry.times,
        retry_at=next_at,
    )
    body = e.StepRetryScheduled(
        attempt=step.attempts, error=scheduled, new_key=failure.effect_state is EffectState.NONE
    )
    return (e.Draft(step=ended.path, body=body),)


def _give_up(state: TaskState, ended: Ended, error: e.ErrorRecord, at: Instant) -> tuple[e.Draft, ...]:
    """Retries are used up: hand over if the plan says so, else the step has failed."""
    step = state.steps[ended.path]
    spec = spec_of(state, ended.path)
    if state.plan.on_error(spec) is OnError.PAUSE and not is_final(state, spec):
        reason = ToolErrorPause(
            failed_step=ended.path,
            error=error.failure.message,
            retryable=spec.retryable,
            suggested_tool=spec.tool,
        )
        return (_pause(state, ended, reason, title=f"{ended.path} failed", why=error.failure.message),)
    body = e.StepFailed(attempt=error.attempt, error=error, duration_s=(at - (step.started_at or at)) / 1000)
    return (e.Draft(step=ended.path, body=body),)


def _uncertain(state: TaskState, ended: Ended, attempt: OpenAttempt) -> e.Draft:
    spec = spec_of(state, ended.path)
    if is_final(state, spec):  # nothing in `finally` pauses
        error = e.ErrorRecord(id=ended.chance.error_id, failure=WORKER_LOST, attempt=attempt.number)
        return e.Draft(step=ended.path, body=e.StepFailed(attempt=attempt.number, error=error, duration_s=0.0))
    reason = UncertainOutcome(
        blocked_step=ended.path,
        attempt=attempt.number,
        idempotency_key=attempt.idempotency_key,
        suggested_tool=attempt.tool,
    )
    return _pause(
        state,
        ended,
        reason,
        title=f"Did {attempt.tool} in step {ended.path} happen?",
        why="the call was cut off, and calling it again might do it twice",
    )


def _pause(state: TaskState, ended: Ended, reason: Reason, *, title: str, why: str) -> e.Draft:
    spec = spec_of(state, ended.path)
    guidance = spec.guidance or state.plan.guidance
    pause = Pause(id=ended.chance.pause_id, step=ended.path, reason=reason, title=title, why=why, guidance=guidance)
    return e.Draft(step=ended.path, body=e.PauseOpened(pause=pause))


def _probed(path: StepPath, step: StepState, probe: Probe | None) -> tuple[e.Draft, ...]:
    if probe is None or step.attempt is None:
        return ()
    return (e.Draft(step=path, body=e.AttemptProbed(attempt=step.attempt.number, result=probe.result)),)


def _done_by_probe(step: StepState, probe: Probe | None, at: Instant) -> e.Draft:
    assert step.attempt is not None and probe is not None and probe.output is not None
    body = e.StepCompleted(
        attempt=step.attempt.number,
        output=probe.output,
        summary=None,
        via="probe",
        tool_used=step.attempt.tool,
        duration_s=(at - (step.started_at or at)) / 1000,
    )
    return e.Draft(step=step.path, body=body)


def _error(ended: Ended, step: StepState, failure: Failure) -> e.ErrorRecord:
    return e.ErrorRecord(
        id=ended.chance.error_id,
        failure=failure,
        attempt=step.attempts,
        retries=step.retries,
        retries_max=ended.retry.times if failure.category is Category.TRANSIENT else 0,
    )


def spec_of(state: TaskState, path: StepPath) -> StepSpec:
    """The step of the plan that a path belongs to."""
    return state.specs[split_path(path)[0]]


def is_final(state: TaskState, spec: StepSpec) -> bool:
    """Whether it is one of the plan's `finally` steps."""
    return any(spec is last for last in state.plan.finally_steps)
