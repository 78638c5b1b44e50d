"""The gate before a call: a slot of its pool, then a place in its rate. Passed only by steps that have one of them.

Waiting is written down (`step.waiting`), costs no retry and holds nothing. A place in a rate is reserved in the store,
so a lap that needs one is begun again once it has it.
"""

from everstep.domain import events as e
from everstep.domain.graph import Wired
from everstep.domain.ids import TaskId
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.titles import step_title
from everstep.engine.catalog import Checked
from everstep.engine.kit import Kit
from everstep.engine.lap import Lap
from everstep.engine.passage import RateWish


def admitted(lap: Lap, wired: Wired, step: StepState, checked: Checked) -> bool:
    """Whether the step may call now; if not, it waits, or the lap asks for what it lacks."""
    pool = wired.spec.pool or checked.entry.spec.pool
    if pool is not None and not lap.kit.passage.pools.take(pool, lap.state, step.path):
        _wait(lap, step, e.StepWaiting(kind="slot", detail=pool, until=None))
        return False
    return checked.rate is None or _in_rate(lap, step, checked)


def _in_rate(lap: Lap, step: StepState, checked: Checked) -> bool:
    """A place that has come, was waited for, or is to be reserved first."""
    assert checked.rate is not None
    provider, rate = checked.rate
    if step.wait is not None and step.wait.kind == "rate" and step.wait.until is not None:
        return step.wait.until <= lap.at
    at = lap.kit.passage.reserved.pop((lap.state.id, step.path, step.attempts + 1), None)
    if at is None:
        name = f"{lap.state.owner}/{provider}"
        lap.wishes.append(RateWish(step=step.path, attempt=step.attempts + 1, name=name, rate=rate))
        return False
    if at > lap.at:
        _wait(lap, step, e.StepWaiting(kind="rate", detail=provider, until=at))
        return False
    return True


def _wait(lap: Lap, step: StepState, waiting: e.StepWaiting) -> None:
    """Say so, once."""
    if step.wait is not None and (step.wait.kind, step.wait.detail) == (waiting.kind, waiting.detail):
        return
    if step.status is StepStatus.PENDING:
        lap.say(e.StepStarted(title=step_title(lap.state, step.path)), step.path)
    lap.say(waiting, step.path)


def forget(task: TaskId, kit: Kit) -> None:
    """The task is not carried here any more."""
    kit.passage.pools.leave(task)
    for key in [key for key in kit.passage.reserved if key[0] == task]:
        del kit.passage.reserved[key]
