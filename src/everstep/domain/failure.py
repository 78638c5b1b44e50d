"""What went wrong in a step, and THE table of how each category is treated (semantics, section 5).

A Failure is a value: stored and shown, never raised.
"""

from enum import StrEnum
from typing import Final

from everstep.domain.record import record
from everstep.domain.values import JsonObject


class Category(StrEnum):
    """Why an attempt failed, as far as its treatment goes."""

    TRANSIENT = "transient"
    CONFIGURATION = "configuration"
    PERMISSION = "permission"
    RESOURCE = "resource"
    LOGIC = "logic"
    INTERNAL = "internal"


class EffectState(StrEnum):
    """Did the call act? `none`: certainly not; `unknown`: no definite answer came; `made`: it ran to its end."""

    NONE = "none"
    UNKNOWN = "unknown"
    MADE = "made"


@record
class Failure:
    """One failed attempt, in the words a person reads."""

    code: str
    category: Category
    message: str
    what_to_do: str
    effect_state: EffectState
    retry_after_ms: int | None = None
    details: JsonObject | None = None
    cause: "Failure | None" = None
    """What went wrong elsewhere, and led to this."""


@record
class Treatment:
    """What a category earns when no step or plan says otherwise."""

    retries: int
    counts_for_breaker: bool
    then: str
    only_if: str = ""
    """What a retry needs besides a place in the budget."""
    counts_if: str = ""
    """Which of its members count for the breaker, if not all."""


TREATMENT: Final[dict[Category, Treatment]] = {
    Category.TRANSIENT: Treatment(retries=3, counts_for_breaker=True, then="try again later, or skip this step"),
    Category.CONFIGURATION: Treatment(retries=0, counts_for_breaker=False, then="correct the arguments"),
    Category.PERMISSION: Treatment(
        retries=1,
        counts_for_breaker=False,
        then="grant access, then retry",
        only_if="after its credential was renewed",
    ),
    Category.RESOURCE: Treatment(
        retries=2,
        counts_for_breaker=True,
        then="ask for less, or free what ran out",
        only_if="each asking for less, as its tool knows how",
        counts_if="remote ones",
    ),
    Category.LOGIC: Treatment(retries=0, counts_for_breaker=False, then="decide what should happen instead"),
    Category.INTERNAL: Treatment(retries=0, counts_for_breaker=False, then="report the bug, or skip this step"),
}


NOBODY_THERE: Final = frozenset({"net_refused", "net_connect", "net_dns", "breaker_open", "tool_missing"})
"""Codes of calls that reached nobody: a step that the plan can do without is left out."""


def counts_for_breaker(failure: Failure) -> bool:
    """Whether it says something about the other side: of what ran out, only what ran out there."""
    if not TREATMENT[failure.category].counts_for_breaker:
        return False
    if failure.category is not Category.RESOURCE:
        return True
    return failure.code.startswith("http_") or bool((failure.details or {}).get("remote"))
