"""One look at a state: what follows without a call, and which calls could start."""

from everstep.domain.ids import Instant
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import TaskState
from everstep.engine import continue_on, end_code, finish, limiting, ripen
from everstep.engine.kit import Kit
from everstep.engine.lap import Lap
from everstep.engine.perform import Performance
from everstep.engine.ready import start_steps


def advance(state: TaskState, kit: Kit, at: Instant, code: Performance | None = None) -> Lap:
    """Everything that follows from a state now. The state is changed by what the lap says."""
    lap = Lap(state, kit, at)
    lap.code = code
    if _plain(lap):
        start_steps(lap)
        if lap.held_back:
            limiting.exhaust(lap)
        elif not lap.proposals:
            _rest(lap)
        return lap
    if state.status not in HELD:
        return lap
    if state.status is TaskStatus.CANCELLING:
        finish.cancel(lap)
        return lap
    if state.handover is not None and continue_on.for_client(lap):
        return lap
    if state.status is TaskStatus.RUNNING and not state.held_back:
        ripen.end_waits(lap)
        finish.meet_goal(lap)
        limiting.announce(lap)
        if state.failing is None and limiting.overdue(lap):
            return lap
    still = state.status is TaskStatus.PAUSING or state.held_back
    if state.failing is not None and (not still or all(state.steps[one.path].ended for one in lap.graph.final)):
        finish.fail(lap)
        return lap
    if state.status is TaskStatus.RUNNING and not state.held_back:
        finish.pause_after(lap)
    if state.status is TaskStatus.PAUSING or state.held_back:
        finish.stand_still(lap)
    if state.status is TaskStatus.RUNNING and not state.held_back and not kit.closing and kit.passage.halted is None:
        start_steps(lap)
        if lap.held_back:
            limiting.exhaust(lap)
        else:
            _rest(lap)
    return lap


def _rest(lap: Lap) -> None:
    return finish.rest(lap) if lap.state.plan.durable is None else end_code.rest(lap)


def broken_off(state: TaskState, kit: Kit, why: str) -> Lap:
    """What is left to say of a task that cannot be written down any further."""
    lap = Lap(state, kit, kit.clock.now())
    finish.break_off(lap, why)
    return lap


def _plain(lap: Lap) -> bool:
    """Nobody asked for anything, nothing failed, nothing is timed: only the plan is to be followed."""
    state = lap.state
    return (
        state.status is TaskStatus.RUNNING
        and not state.pauses
        and not state.timers
        and state.failing is None
        and state.pause_after is None
        and (state.handover is None or state.handover.continuing is None)
        and lap.graph.done_when is None
        and not lap.kit.closing
        and lap.kit.passage.halted is None
        and not state.budget.alarm
        and lap.at < state.budget.look_at
    )
