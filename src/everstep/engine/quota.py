"""A day's quota that is used up: the call is not made."""

from everstep.domain.explain import clock
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.rate import next_day
from everstep.domain.scope import rfc3339
from everstep.domain.task import StepState
from everstep.engine.fallback import instead
from everstep.engine.hinder import give_up
from everstep.engine.lap import Lap
from everstep.engine.passage import Allowance


def instead_of_quota(lap: Lap, step: StepState, allowance: Allowance) -> bool:
    """Whether a fallback goes on; else the step has failed, or asks."""
    renewed = next_day(lap.at)
    failure = Failure(
        code="quota_exhausted",
        category=Category.RESOURCE,
        message=f"all {allowance.quota} calls of {allowance.provider} for today are made",
        what_to_do=f"wait until {clock(renewed)}, or raise `quotas.{allowance.provider}`",
        effect_state=EffectState.NONE,
        details={"provider": allowance.provider, "max": allowance.quota, "renewed_at": rfc3339(renewed)},
    )
    if instead(lap, step, failure):
        return True
    give_up(lap, step, failure)
    return False
