"""When a task has used up what it was given: tell, ask or fail; nothing more is called meanwhile."""

from everstep.domain import events as e
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.pauses import LimitReached
from everstep.engine import finish
from everstep.engine.lap import Lap


def announce(lap: Lap) -> None:
    """`task.limit_near`, once per limit."""
    for level in lap.state.budget.nearing(lap.at):
        lap.say(e.TaskLimitNear(limit=level.limit, used=level.used, max=level.max))


def overdue(lap: Lap) -> bool:
    """The task's deadline has passed: it fails once nothing is in flight."""
    if not lap.state.budget.overdue(lap.at):
        return False
    finish.fail(
        lap,
        _error(
            lap,
            "deadline",
            "the task's deadline has passed",
            "retry it, without this deadline",
        ),
    )
    return True


def exhaust(lap: Lap) -> None:
    """A call was held back because a limit is used up; calls that this lap still begins go first."""
    level = lap.state.budget.spent(lap.at, len(lap.proposals))
    if lap.proposals or level is None:
        return None
    what = f"{level.used:g} of {level.max:g} {_UNITS[level.limit]} are used"
    if lap.state.budget.on_reached == "fail":
        raise_it = f"raise `limits.{level.limit}` of the plan, or leave it to a person: `on_reached: pause`"
        return finish.fail(lap, _error(lap, f"limit_{level.limit}", f"the task's limit is reached: {what}", raise_it))
    reason = LimitReached(limit=level.limit, used=level.used, max=level.max)
    lap.pause(None, reason, title=f"The task's limit of {level.limit.replace('_', ' ')} is reached", why=what)
    return finish.stand_still(lap)


_UNITS = {
    "calls": "calls",
    "cost": "units of cost",
    "wall_time": "seconds",
    "output": "bytes of output",
    "cpu_time": "seconds of CPU time",
    "disk": "bytes written",
}


def _error(lap: Lap, code: str, message: str, what_to_do: str) -> e.ErrorRecord:
    failure = Failure(
        code=code,
        category=Category.RESOURCE,
        message=message,
        what_to_do=what_to_do,
        effect_state=EffectState.NONE,
    )
    return e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure, task_continues=False)
