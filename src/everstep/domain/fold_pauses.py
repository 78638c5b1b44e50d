"""What the journal says of pauses: opened, answered, run out, withdrawn. A part of `fold`."""

from dataclasses import replace
from typing import Final

from everstep.domain import events as e
from everstep.domain.again import run_producer
from everstep.domain.continuation import is_handoff
from everstep.domain.ids import Digest, Instant, PauseId, StepPath
from everstep.domain.moves import move_step, step_of
from everstep.domain.pauses import (
    FOR_PRODUCER,
    Grant,
    InputRequired,
    LimitReached,
    Pause,
    PauseType,
    UnresolvedDependency,
)
from everstep.domain.states import Phase, StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskState

_AGAIN: Final = frozenset(
    {"supply_arguments", "retry", "retry_with", "not_happened", "answer", "approve", "edit", "reject"}
)
"""Answers after which the step is no longer paused, whatever comes of it."""
_NEW_KEY: Final = frozenset({"retry", "retry_with"})
"""Answers that begin a new logical try; no earlier approval covers it."""
_GRANTING: Final = frozenset({"approve", "edit"})


def pause_opened(state: TaskState, body: e.PauseOpened, path: StepPath | None, at: Instant) -> None:
    pause = body.pause
    state.pauses[pause.id] = pause
    state.opened[pause.id] = at
    if pause.type is PauseType.USER_REQUESTED:
        state.pause_after = None
    if path is not None:
        step = step_of(state, path)
        if step.status is StepStatus.PENDING:
            move_step(state, step, StepStatus.RUNNING)
        move_step(state, step, StepStatus.PAUSED)
        step.pause = pause.id
        state.awaiting.pop(path, None)
        if pause.call is not None:
            step.phase = Phase.AWAITING_APPROVAL
            step.grant = None


def pause_answered(state: TaskState, body: e.PauseAnswered, path: StepPath | None, at: Instant) -> None:
    pause = _close(state, body.pause)
    if isinstance(pause.reason, LimitReached) and isinstance(body.value, int | float):
        state.budget.raised(pause.reason.limit, body.value)
    if path is None:
        return
    if isinstance(pause.reason, UnresolvedDependency) and body.answer in FOR_PRODUCER:
        run_producer(state, pause.reason.producing_step, path)
        _go_on(state, path, at)
        return
    if body.answer not in _AGAIN:
        return
    step = _go_on(state, path, at)
    if body.answer in _NEW_KEY:
        step.tries += 1
        step.retries = 0
        step.detour = None
        step.grant = step.given = None
        step.spent = step.approval
    if body.arguments is not None:
        step.arguments = {**(step.arguments or {}), **body.arguments}
    if isinstance(pause.reason, InputRequired):
        step.answer = body.value
    if pause.call is not None:
        step.decision = {"answer": body.answer, "note": body.note}
    if body.answer in _GRANTING:
        step.grant = _grant(pause, body.digest, pause.expires_at)


def pause_expiring(state: TaskState, body: e.PauseExpiring, _path: StepPath | None, _at: Instant) -> None:
    state.pauses[body.pause] = replace(state.pauses[body.pause], expires_at=body.expires_at)
    state.warned.add(body.pause)


def pause_expired(state: TaskState, body: e.PauseExpired, path: StepPath | None, at: Instant) -> None:
    pause = _close(state, body.pause)
    if body.action == "cancel":
        state.cancel_reason = "handoff_expired" if is_handoff(pause) else "pause_timeout"
    if path is None or body.action not in _AGAIN:
        return
    step = _go_on(state, path, at)
    step.decision = {"answer": body.action, "note": "nobody answered in time"}
    if body.action in _GRANTING:
        step.grant = _grant(pause, None, None)


def pause_withdrawn(state: TaskState, body: e.PauseWithdrawn, path: StepPath | None, at: Instant) -> None:
    state.pauses.pop(body.pause, None)
    if path is not None:  # it goes on, or is skipped by what comes next
        _go_on(state, path, at)


def _close(state: TaskState, pause_id: PauseId) -> Pause:
    pause = state.pauses.pop(pause_id)
    if state.status is TaskStatus.PAUSING and pause.of_the_task:
        state.lifted = pause
    return pause


def _go_on(state: TaskState, path: StepPath, at: Instant) -> StepState:
    step = step_of(state, path)
    step.clock_from = at
    move_step(state, step, StepStatus.RUNNING)
    step.phase = Phase.VALIDATING
    step.pause = None
    return step


def _grant(pause: Pause, digest: Digest | None, expires_at: Instant | None) -> Grant | None:
    """What an answer to this question allows; `digest`: of another call than was asked about."""
    call = pause.call
    if call is None:
        return None
    return Grant(
        approval=pause.id,
        tool=call.tool,
        tool_version=call.tool_version,
        policy=call.policy,
        digest=digest or call.input.digest,
        items=call.input if call.of_items else None,
        expires_at=expires_at,
    )
