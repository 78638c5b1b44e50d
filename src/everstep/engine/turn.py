"""What a driver outside is to do for a held task until something happens: a function of its state and the time."""

from everstep.domain.ids import Instant, Millis, StepPath
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import TaskState
from everstep.engine.commit import HeldTask
from everstep.engine.judge import cut_short, may_end
from everstep.engine.kit import Kit
from everstep.engine.timing import timeout_of
from everstep.ports.driver import OpenCall, Turn


def turn_of(held: HeldTask, kit: Kit, since: Instant) -> Turn:
    """`since`: what was due before has been looked at already."""
    state, now = held.state, kit.clock.now()
    if state.status not in HELD:
        return Turn(lease=None, seq=state.seq, over=state.terminal)
    ending = _ending(state, kit, now)
    calls = tuple(
        OpenCall(
            step=path,
            attempt=state.open[path].number,
            within_ms=timeout_of(state, path, kit),
            stop=path in ending,
        )
        for path in state.in_flight
        if state.open[path].epoch == state.epoch
    )
    last = kit.finals_until(state) if state.status is TaskStatus.CANCELLING else state.budget.deadline
    due = min((at for at in (*state.timers.values(), last) if at is not None and at > since), default=None)
    look_in = None if due is None else Millis(max(0, due - now))
    return Turn(lease=held.lease, seq=state.seq, open=calls, look_in_ms=look_in)


def _ending(state: TaskState, kit: Kit, now: Instant) -> frozenset[StepPath]:
    """Calls that should end now; of a task that is cancelled all but its `finally` steps, while those have time."""
    if state.status is TaskStatus.CANCELLING:
        until = kit.finals_until(state)
        assert until is not None
        return frozenset(path for path in state.in_flight if now >= until or not may_end(state, path))
    if state.pausing is not None or kit.passage.halted is not None:
        return frozenset(cut_short(state, state.in_flight, kit)[0])
    return frozenset()
