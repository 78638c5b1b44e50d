"""The effect rule: what follows when nobody knows whether a call happened (semantics, section 3)."""

from enum import StrEnum
from typing import Final

from everstep.domain.outcome import Probe
from everstep.domain.plan import Effect, OnUncertain


class Resolution(StrEnum):
    """What to do about an unclear call."""

    CALL_AGAIN = "call_again"
    DONE = "done"
    ASK = "ask"
    FAIL = "fail"


_BY_PLAN: Final = {
    OnUncertain.ASK: Resolution.ASK,
    OnUncertain.RETRY: Resolution.CALL_AGAIN,
    OnUncertain.FAIL: Resolution.FAIL,
}
_BY_PROBE: Final = {"done": Resolution.DONE, "not_done": Resolution.CALL_AGAIN}


def resolve_unclear(effect: Effect, probe: Probe | None, on_uncertain: OnUncertain) -> Resolution:
    """Repeating is harmless; or a look decides; or the plan does, which asks unless it says otherwise."""
    if effect.repeatable:
        return Resolution.CALL_AGAIN
    if effect is Effect.VERIFIABLE and probe is not None and probe.result in _BY_PROBE:
        return _BY_PROBE[probe.result]
    return _BY_PLAN[on_uncertain]


def expected_decision(effect: Effect, on_uncertain: OnUncertain) -> str:
    """What recovery announces before anybody has looked: `probe` where a look will decide."""
    if effect is Effect.VERIFIABLE:
        return "probe"
    return resolve_unclear(effect, None, on_uncertain).value
