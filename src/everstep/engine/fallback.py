"""Another tool, or a literal value, where the first choice failed or is held back; and waiting, where there is none."""

from everstep.domain import events as e
from everstep.domain.consequence import fall_back, goes_without
from everstep.domain.failure import Failure
from everstep.domain.scope import StateScope, error_facts
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.titles import step_title
from everstep.domain.values import Sealed
from everstep.engine.admit import Held
from everstep.engine.hinder import give_up
from everstep.engine.lap import Lap
from everstep.engine.timing import too_late


def in_force(step: StepState) -> int:
    """The number of the fallback that the step has come to; 0: none."""
    return 0 if step.detour is None else step.detour.fallback


def scope_of(step: StepState, scope: StateScope) -> StateScope:
    """A fallback sees why it is called."""
    if not in_force(step):
        return scope
    return scope.also({"error": None if step.error is None else error_facts(step.error)})


def complete_by_value(lap: Lap, step: StepState, value: Sealed) -> None:
    """The last fallback is a literal: it always succeeds."""
    body = e.StepCompleted(
        attempt=None,
        output=value,
        summary=None,
        via="literal",
        tool_used=None,
        duration_s=(lap.at - (step.started_at or lap.at)) / 1000,
    )
    lap.say(body, step.path)


def instead(lap: Lap, step: StepState, failure: Failure) -> bool:
    """Whether the step goes on with its next fallback, without a call of what it had come to."""
    other = fall_back(lap.state, step, failure, called=False)
    if other is not None:
        _begin(lap, step)
        lap.say(other.body, other.step)
    return other is not None


def hold_back(lap: Lap, step: StepState, held: Held) -> bool:
    """An open breaker: whether a fallback goes on; else the step waits, as long as its own time allows."""
    if instead(lap, step, held.failure):
        return True
    optional = goes_without(lap.state, step.path, held.failure)
    if optional or too_late(lap.state, step.path, lap.kit, held.until, now=lap.at):
        give_up(lap, step, held.failure)
        return False
    _begin(lap, step)
    waits = step.wait
    if waits is None or (waits.ref, waits.until) != (held.key.id, held.until):
        lap.say(e.StepWaiting(kind="breaker", detail=held.key.text, until=held.until, ref=held.key.id), step.path)
    return False


def _begin(lap: Lap, step: StepState) -> None:
    """Something comes before the first attempt."""
    if step.status is StepStatus.PENDING:
        lap.say(e.StepStarted(title=step_title(lap.state, step.path)), step.path)
