"""decide(state, path, outcome, …) -> events: what follows from one attempt's end.

Retry, hand over, skip or fail: a pure function, so every rule can be tested without waiting. It says what happened
to the step; what starts next is `graph`'s and `propose`'s business.
"""

from dataclasses import replace
from typing import Final, assert_never

from everstep.domain import events as e
from everstep.domain.consequence import fall_back, final_error, goes_without, handed_over, is_final, spec_of
from everstep.domain.detour import used_retries
from everstep.domain.effects import Resolution, resolve_unclear
from everstep.domain.ended import Ended
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, StepPath, child_id
from everstep.domain.outcome import Asked, Failed, Listens, Lost, Probe, Spawns, Succeeded, Waits
from everstep.domain.pauses import MAY_ANSWER, InputRequired, Pause, Reason, UncertainOutcome
from everstep.domain.policy import backoff_ms, budget, may_retry, out_of_time
from everstep.domain.states import CHILD, EVENT, TaskStatus
from everstep.domain.task import OpenAttempt, StepState, TaskState, finally_until

WORKER_LOST = Failure(
    code="worker_lost",
    category=Category.TRANSIENT,
    message="the worker died, or lost its lease, inside the call",
    what_to_do="the effect rule decides: call again, look, or ask",
    effect_state=EffectState.UNKNOWN,
)

NOT_MADE = Failure(
    code="cancelled",
    category=Category.LOGIC,
    message="the task was cancelled before it made its child",
    what_to_do="nothing",
    effect_state=EffectState.NONE,
)


def decide(state: TaskState, ended: Ended, at: Instant) -> tuple[e.Draft, ...]:
    """The events that one attempt's end causes; none if that attempt is no longer open."""
    step = state.steps[ended.path]
    attempt = step.attempt
    if attempt is None or ended.attempt not in (0, attempt.number):
        return ()
    outcome = ended.outcome
    match outcome:
        case Succeeded():
            done = _completed(step, attempt, outcome, at)
            return (*_left(outcome, step), done) if outcome.left else (done,)
        case Waits():
            wait = e.StepWaiting(kind="time", detail=attempt.tool, until=outcome.until, output=outcome.output)
            return (e.Draft(step=ended.path, body=wait),)
        case Listens():
            waits = e.StepWaiting(kind=EVENT, detail=outcome.event, until=outcome.until, ref=outcome.key)
            return (e.Draft(step=ended.path, body=waits),)
        case Spawns():
            return _spawned(state, ended, attempt)
        case Asked():
            return _asked(state, ended, attempt, outcome)
        case Failed():
            return _failed(state, ended, outcome, at)
        case Lost():
            return _lost(state, ended, outcome, at)
        case _:
            assert_never(outcome)


def _completed(step: StepState, attempt: OpenAttempt, outcome: Succeeded, at: Instant) -> e.Draft:
    duration_s = (at - (step.started_at or at)) / 1000
    body = e.StepCompleted(
        attempt.number,
        outcome.output,
        outcome.summary,
        "tool",
        attempt.tool,
        duration_s,
        outcome.wall_s,
        None,
        outcome.usage,
    )
    if outcome.cached_s is not None:
        body = replace(body, cached_s=outcome.cached_s)
    detour = step.detour
    if detour is not None:
        body = replace(body, via="fallback" if detour.fallback else "tool", degraded=detour.degraded)
    return e.Draft(body, step.path)


def _left(outcome: Succeeded | Failed, step: StepState) -> tuple[e.Draft, ...]:
    """What the call left beside its output; said while its attempt is still open."""
    assert step.attempt is not None
    number, kept = step.attempt.number, [one.artifact for one in outcome.left]
    said = [
        e.ArtifactAdded(attempt=number, name=one.name, digest=one.digest, media_type=one.media_type, bytes=one.bytes)
        for one in kept
    ]
    return tuple(e.Draft(step=step.path, body=one) for one in said)


def _spawned(state: TaskState, ended: Ended, attempt: OpenAttempt) -> tuple[e.Draft, ...]:
    """The step waits for the task it makes, which is made in the same commit; a cancelled one makes none."""
    if state.status is TaskStatus.CANCELLING:
        error = e.ErrorRecord(id=ended.chance.error_id, failure=NOT_MADE, attempt=attempt.number)
        closed = e.AttemptAbandoned(
            attempt=attempt.number, error=error, effect_state=EffectState.NONE, called=True, duration_s=0.0
        )
        return (e.Draft(step=ended.path, body=closed),)
    child = child_id(attempt.idempotency_key)
    return (e.Draft(step=ended.path, body=e.StepWaiting(kind=CHILD, detail=child, until=None)),)


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
    opened = _pause(
        state, ended, reason, title=asked.question, why="the step asks before it goes on", by=MAY_ANSWER[asked.by]
    )
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
    first = (
        *_left(outcome, step),
        e.Draft(step=ended.path, body=closed),
        *_probed(ended.path, step, outcome.probe),
    )
    if not outcome.called or _given_up(state, ended.path, at):
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
                return (*first, *_again(state, ended, outcome, at))
    if outcome.failure.effect_state is EffectState.MADE:
        return (*first, *_give_up(state, ended, error, at))
    return (*first, *_again(state, ended, outcome, at))


def _lost(state: TaskState, ended: Ended, lost: Lost, at: Instant) -> tuple[e.Draft, ...]:
    step = state.steps[ended.path]
    assert step.attempt is not None
    probe = lost.probe
    error = _error(ended, step, lost.why or WORKER_LOST)
    closed = _ENDED_AS[lost.ended](
        attempt=step.attempt.number,
        error=error,
        effect_state=EffectState.NONE if lost.safe else EffectState.UNKNOWN,
        called=True,
        duration_s=(at - step.attempt.started_at) / 1000,
    )
    first = (e.Draft(step=ended.path, body=closed), *_probed(ended.path, step, probe))
    if lost.safe or _given_up(state, ended.path, at):
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


def _given_up(state: TaskState, path: StepPath, at: Instant) -> bool:
    """Whether nothing more is done about a step: its task is being cancelled, and it is no `finally` step in time."""
    until = finally_until(state)
    return until is not None and (at >= until or not is_final(state, spec_of(state, path)))


def _unclear(state: TaskState, step: StepState, probe: Probe | None) -> Resolution:
    assert step.attempt is not None
    spec = spec_of(state, step.path)
    return resolve_unclear(step.attempt.effect, probe, state.plan.on_uncertain(spec))


def _again(state: TaskState, ended: Ended, outcome: Failed, at: Instant) -> tuple[e.Draft, ...]:
    """A retry if the budget has one: with a new key, unless the call may have happened."""
    step = state.steps[ended.path]
    failure = outcome.failure
    error = _error(ended, step, failure)
    used = used_retries(step.retries, step.detour, failure.category)
    if not may_retry(ended.retry, failure, used, renewed=outcome.renewed, less=outcome.less is not None):
        return _give_up(state, ended, error, at)
    next_at = Instant(at + backoff_ms(ended.retry, failure, used, ended.chance.jitter))
    if out_of_time(ended.retry, step.counted_from, next_at):
        return _give_up(state, ended, error, at)
    body = e.StepRetryScheduled(
        attempt=step.attempts,
        error=replace(error, retries=used + 1, retry_at=next_at),
        new_key=failure.effect_state is EffectState.NONE,
        degraded=outcome.less if failure.category is Category.RESOURCE else None,
    )
    return (e.Draft(step=ended.path, body=body),)


def _give_up(state: TaskState, ended: Ended, error: e.ErrorRecord, at: Instant) -> tuple[e.Draft, ...]:
    """Retries are used up: the next fallback, else hand over if the plan says so, else the step has failed."""
    step = state.steps[ended.path]
    other = fall_back(state, step, error.failure)
    if other is not None:
        return (other,)
    error = final_error(state, ended.path, error, ended.dependants)
    reason = handed_over(state, ended.path, error.failure)
    if reason is not None:
        return (_pause(state, ended, reason, title=f"{ended.path} failed", why=error.failure.message),)
    if goes_without(state, ended.path, error.failure):
        return (e.Draft(step=ended.path, body=e.StepSkipped(reason=e.SkipReason.TOOL_UNAVAILABLE)),)
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


def _pause(
    state: TaskState,
    ended: Ended,
    reason: Reason,
    *,
    title: str,
    why: str,
    by: tuple[str, ...] = MAY_ANSWER["anyone"],
) -> e.Draft:
    spec = spec_of(state, ended.path)
    pause = Pause(
        id=ended.chance.pause_id,
        step=ended.path,
        reason=reason,
        title=title,
        why=why,
        guidance=spec.guidance or state.plan.guidance,
        may_answer=by,
    )
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
        retries=used_retries(step.retries, step.detour, failure.category),
        retries_max=budget(ended.retry, failure.category),
    )
