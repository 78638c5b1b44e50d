"""A provider that will not be called any more in time: today's quota is used up, or the next place is too late."""

from everstep.domain.explain import clock
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant
from everstep.domain.rate import next_day
from everstep.domain.scope import rfc3339
from everstep.domain.task import StepState
from everstep.engine.fallback import instead
from everstep.engine.hinder import give_up
from everstep.engine.lap import Lap
from everstep.engine.passage import Allowance


def instead_of_quota(lap: Lap, step: StepState, allowance: Allowance) -> bool:
    """The day's calls are made. Whether a fallback goes on; else the step has failed, or asks."""
    renewed = next_day(lap.at)
    return _instead(
        lap,
        step,
        Failure(
            code="quota_exhausted",
            category=Category.RESOURCE,
            message=f"all {allowance.quota} calls of {allowance.provider} for today are made",
            what_to_do=f"wait until {clock(renewed)}, or raise `quotas.{allowance.provider}`",
            effect_state=EffectState.NONE,
            details={"provider": allowance.provider, "max": allowance.quota, "renewed_at": rfc3339(renewed)},
        ),
    )


def instead_of_turn(lap: Lap, step: StepState, allowance: Allowance, turn: Instant) -> bool:
    """Its turn comes when the step's own time is over: nobody need wait for that. As above."""
    return _instead(
        lap,
        step,
        Failure(
            code="rate_limited",
            category=Category.RESOURCE,
            message=f"the next call of {allowance.provider} may be made at {clock(turn)}, when the step's time is over",
            what_to_do=f"try again later, or raise `retry.within` of the step or `rates.{allowance.provider}`",
            effect_state=EffectState.NONE,
            details={"provider": allowance.provider, "next_at": rfc3339(turn)},
        ),
    )


def _instead(lap: Lap, step: StepState, failure: Failure) -> bool:
    if instead(lap, step, failure):
        return True
    give_up(lap, step, failure)
    return False
