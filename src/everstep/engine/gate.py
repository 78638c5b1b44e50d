"""The gate before a call: a slot of its pool, then a place among the calls of its provider. Most steps have neither.

Waiting is written down (`step.waiting`), costs no retry and holds nothing. A place in a rate is reserved in the store,
so a lap that needs one is begun again once it has it.
"""

from typing import Literal, TypeAlias

from everstep.domain import events as e
from everstep.domain.graph import Wired
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.titles import step_title
from everstep.engine.allowed import instead_of_quota, instead_of_turn
from everstep.engine.catalog import Checked
from everstep.engine.lap import Lap
from everstep.engine.passage import Allowance, RateWish
from everstep.engine.timing import too_late

Held: TypeAlias = Literal["", "waits", "instead"]
"""Whether a call may not be made now: it is waited for, or has ended without one; or its next fallback is to be."""


def held_back(lap: Lap, wired: Wired, step: StepState, checked: Checked) -> Held:
    """Empty if the step may call now; if not, it waits, or the lap asks for what it lacks."""
    pool = wired.spec.pool or checked.entry.spec.pool
    if pool is not None and not lap.kit.passage.pools.take(pool, lap.state, step.path):
        _wait(lap, step, e.StepWaiting(kind="slot", detail=pool, until=None))
        return "waits"
    if pool is not None and lap.kit.passage.shared is not None and not _shared(lap, step, pool):
        return "waits"
    return "" if checked.allowance is None else _by_allowance(lap, step, checked.allowance)


def _shared(lap: Lap, step: StepState, pool: str) -> bool:
    """Whether the fleet has a slot for it too; if nobody has asked yet, the lap does."""
    kit = lap.kit
    if kit.passage.shared is None or pool not in kit.passage.pools.shared:
        return True
    has = kit.passage.shared.has((lap.state.id, step.path))
    if has is None:
        lap.ask_slot(step.path, pool)
    elif not has:
        _wait(lap, step, e.StepWaiting(kind="slot", detail=pool, until=None))
    return bool(has)


def _by_allowance(lap: Lap, step: StepState, allowance: Allowance) -> Held:
    """A place that has come, was waited for, or is to be reserved first; or there is none left today."""
    if step.wait is not None and step.wait.kind == "rate" and step.wait.until is not None:
        return "" if step.wait.until <= lap.at else "waits"
    attempt, reserved = step.attempts + 1, lap.kit.passage.reserved
    place = (lap.state.id, step.path, attempt, allowance.provider)
    if place not in reserved:
        lap.wishes.append(RateWish(step=step.path, attempt=attempt, owner=lap.state.owner, allowance=allowance))
        return "waits"
    lap.places.append(place)
    at = reserved[place]
    if at is None:
        return "instead" if instead_of_quota(lap, step, allowance) else "waits"
    if at > lap.at and too_late(lap.state, step.path, lap.kit, at, now=lap.at):
        return "instead" if instead_of_turn(lap, step, allowance, at) else "waits"
    if at > lap.at:
        _wait(lap, step, e.StepWaiting(kind="rate", detail=allowance.provider, until=at))
        return "waits"
    return ""


def _wait(lap: Lap, step: StepState, waiting: e.StepWaiting) -> None:
    """Say so, once."""
    if step.wait is not None and (step.wait.kind, step.wait.detail) == (waiting.kind, waiting.detail):
        return
    if step.status is StepStatus.PENDING:
        lap.say(e.StepStarted(title=step_title(lap.state, step.path)), step.path)
    lap.say(waiting, step.path)
