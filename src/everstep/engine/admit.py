"""Whether a call may be proposed: its owner may use the tool, its target is well, its breaker lets it through."""

from everstep.domain.breaker import Ask, BreakerKey, BreakerState, Caller
from everstep.domain.consequence import spec_of
from everstep.domain.detour import StepDenied, breaker_of
from everstep.domain.explain import clock
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant
from everstep.domain.permissions import denial, lacking
from everstep.domain.record import record
from everstep.domain.task import StepState
from everstep.engine.catalog import Checked
from everstep.engine.lap import Lap
from everstep.engine.timing import attempt_ends


@record
class Held:
    """An open breaker, until when, and how that reads as a failure."""

    key: BreakerKey
    until: Instant
    failure: Failure


def admit(lap: Lap, step: StepState, checked: Checked) -> Held | None:
    """None: it may be proposed; if its breaker is half-open, the commit asks for the one permit."""
    state, breakers = lap.state, lap.kit.breakers
    name = breaker_of(spec_of(state, step.path), step.detour)
    key = breakers.key(state.owner, name, checked.entry, checked.input)
    known = breakers.find(key, lap.at)
    if known is None or known.state is BreakerState.CLOSED:
        return None
    until = breakers.holds_back(known, lap.at, lap.kit.worker)
    if until is None:
        breakers.waits_no_more(key, state.id)
        ends = Instant(lap.at + attempt_ends(state, step.path, lap.kit, lap.at))
        caller = Caller(task=state.id, step=step.path, attempt=step.attempts + 1)
        lap.asks.append(Ask(key=key, caller=caller, until=ends, due_at=state.timers.get(step.path)))
        return None
    breakers.wait(key, state.id)
    return Held(key=key, until=until, failure=_open(key, until, known.last_error))


def deny(lap: Lap, step: StepState, checked: Checked) -> Failure | None:
    """What the owner may not use, as the policy stands now; that it was denied is written down."""
    owner, spec = lap.state.owner, checked.entry.spec
    permission = lacking(spec.permissions, lap.kit.limits.consent.permissions.get(owner))
    if permission is None:
        return None
    failure = denial(spec.name, permission, owner)
    lap.say(StepDenied(permission=permission, why=failure.message), step.path)
    return failure


def not_well(lap: Lap, checked: Checked) -> Failure | None:
    """Why the target cannot be used now, as far as anybody knows."""
    assert isinstance(checked.input.value, dict)
    target = checked.entry.target(checked.entry.call(checked.input.value))
    return lap.kit.passage.wellness.ill(checked.entry.family, target, lap.at)


def _open(key: BreakerKey, until: Instant, last_error: str | None) -> Failure:
    because = f"; the last failure was {last_error}" if last_error else ""
    return Failure(
        code="breaker_open",
        category=Category.TRANSIENT,
        message=f"calls of {key.text} failed too often and are held back until {clock(until)}{because}",
        what_to_do=f"wait, or, if the cause is gone: everstep breakers reset {key.id}",
        effect_state=EffectState.NONE,
        details={"breaker": key.id},
    )
