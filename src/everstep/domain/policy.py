"""Retry and backoff: how often, and how long to wait in between. Budgets are counted in *re*-tries.

Each category has a budget of its own (`TREATMENT`); the plan's `retry` sets the transient one, and 0 turns all off.
"""

from typing import Final

from everstep.domain.failure import TREATMENT, Category, Failure
from everstep.domain.ids import Instant, Millis
from everstep.domain.plan import PlanSpec, RetrySpec
from everstep.domain.record import record

ONLY: Final[dict[str, tuple[str, ...]]] = {
    "timeout": ("timeout", "net_read", "http_408", "http_504"),
    "network": ("net_",),
    "rate_limited": ("http_429", "rate_limited"),
    "server_error": ("http_5",),
    "crash": ("browser_crashed", "worker_lost"),
}
"""What each word of `retry.only` admits, as prefixes of codes."""


@record
class RetryPolicy:
    """The rule in force for one step."""

    times: int
    delay_ms: Millis
    factor: float
    max_delay_ms: Millis
    within_ms: Millis | None
    only: tuple[str, ...] | None


def retry_policy(
    plan: PlanSpec, said_here: RetrySpec | None, tool_retries: int | None, usual: RetryPolicy
) -> RetryPolicy:
    """Key by key: the step or fallback, the plan's defaults, the tool, the settings."""
    rule = usual if tool_retries is None else _over(usual, RetrySpec(times=tool_retries))
    for said in (plan.defaults.retry, said_here):
        if said is not None:
            rule = _over(rule, said)
    return rule


def _over(rule: RetryPolicy, said: RetrySpec) -> RetryPolicy:
    return RetryPolicy(
        times=rule.times if said.times is None else said.times,
        delay_ms=said.delay_ms or rule.delay_ms,
        factor=said.factor or rule.factor,
        max_delay_ms=said.max_delay_ms or rule.max_delay_ms,
        within_ms=said.within_ms or rule.within_ms,
        only=rule.only if said.only is None else said.only,
    )


def budget(policy: RetryPolicy, category: Category) -> int:
    """How many retries failures of this category may use."""
    if category is Category.TRANSIENT:
        return policy.times
    return TREATMENT[category].retries if policy.times else 0


def may_retry(policy: RetryPolicy, failure: Failure, used: int, *, renewed: bool = False, less: bool = False) -> bool:
    """Whether this failure earns one more try; `renewed`: its credential was, `less`: its tool can ask for less."""
    if used >= budget(policy, failure.category):
        return False
    if failure.category is Category.PERMISSION:
        return renewed
    if failure.category is Category.RESOURCE:
        return less
    if policy.only is None:
        return True
    return any(failure.code.startswith(prefix) for word in policy.only for prefix in ONLY[word])


def backoff_ms(policy: RetryPolicy, failure: Failure, used: int, draw: float) -> Millis:
    """random(0.5, 1) x min(max_delay, delay x factor^used), and never before `Retry-After`.

    A renewed credential is used at once.
    """
    ceiling = min(float(policy.max_delay_ms), policy.delay_ms * policy.factor**used)
    if failure.category is Category.PERMISSION:
        ceiling = 0.0
    return Millis(round(max((0.5 + draw / 2) * ceiling, failure.retry_after_ms or 0)))


def out_of_time(policy: RetryPolicy, since: Instant | None, next_at: Instant) -> bool:
    """Whether the next try would come after the step's own deadline, which counts from `since`."""
    return policy.within_ms is not None and since is not None and next_at > since + policy.within_ms


USUAL_RETRY: Final = RetryPolicy(
    times=3, delay_ms=Millis(1000), factor=2.0, max_delay_ms=Millis(30_000), within_ms=None, only=None
)
