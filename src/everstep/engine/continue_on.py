"""A task that a client has taken up for one call: that call, its outcome, and then it stands, or the engine goes on."""

from everstep.domain import events as e
from everstep.domain.consequence import spec_of
from everstep.domain.continued import TAKEN_OVER
from everstep.domain.ids import StepPath
from everstep.domain.pauses import PauseType, UserRequested
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskState
from everstep.engine import limiting
from everstep.engine.lap import Lap
from everstep.engine.parts import end_for_the_client, for_the_client
from everstep.engine.propose import callable_now, propose_call

ASKED_FIRST = frozenset({PauseType.APPROVAL_REQUIRED, PauseType.INPUT_REQUIRED, PauseType.LIMIT_REACHED})
"""Pauses after which the client's call is still to be made."""


def for_client(lap: Lap) -> bool:
    """What a client's call needs now; true if nothing else may start."""
    state, between = lap.state, lap.state.handover
    assert between is not None
    if between.continuing is not None:
        end_for_the_client(lap, between.continuing)
        _report(lap, between.continuing)
    if not between.alone or state.failing is not None or state.status is not TaskStatus.RUNNING or state.held_back:
        return False
    if between.continuing is not None:
        _call(lap, state.steps[between.continuing])
    waits = lap.proposals or lap.needs or lap.wishes or lap.slots or state.open or state.timers or lap.kit.closing
    if not waits and not _settled(state):
        stand(lap)
    return True


def stand(lap: Lap) -> None:
    """Wait for whoever takes over: they go on, answer what is open, or complete the task."""
    if not lap.state.pauses:
        reason = UserRequested(by=TAKEN_OVER, note=None)
        lap.pause(None, reason, title="Waits for the client", why="the client goes on with calls of its own")
    oldest = next(iter(lap.state.pauses.values()))
    lap.say(e.TaskPaused(pause=oldest.id, reason_type=oldest.type))


def _report(lap: Lap, path: StepPath) -> None:
    """The outcome of the client's call, in the transaction that records it."""
    state, between = lap.state, lap.state.handover
    step = state.steps[path]
    if between is None or not _decided(state, step):
        return
    completed = step.status is StepStatus.COMPLETED
    body = e.TaskContinued(
        tool=spec_of(state, path).tool or "",
        output=step.output if completed else None,
        failure=None if completed or step.error is None else step.error.failure,
        key=between.key,
    )
    lap.say(body, path)


def _decided(state: TaskState, step: StepState) -> bool:
    """Whether something came of the call, if only a question about it."""
    if step.status is StepStatus.PAUSED:
        asked = state.pauses.get(step.pause) if step.pause is not None else None
        return asked is not None and asked.type not in ASKED_FIRST
    return step.ended


def _call(lap: Lap, step: StepState) -> None:
    """The first try, or the next one if it is due."""
    if lap.kit.closing or lap.kit.passage.halted is not None:
        return
    if step.status is StepStatus.PENDING or callable_now(lap, step):
        propose_call(lap, for_the_client(lap, step.path), step, lap.scope)
        if lap.held_back:
            limiting.exhaust(lap)


def _settled(state: TaskState) -> bool:
    """Whether it stands already, or a step of it waits for a slot and is woken when there is one."""
    return state.status is not TaskStatus.RUNNING or any(step.wait is not None for step in state.steps.values())
