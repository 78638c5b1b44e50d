"""How often one token may ask, and how many of its requests may be under way. In memory: it guards this process."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.rate import Rate

BUCKETS_MAX: Final = 10_000
AT_ONCE_MAX: Final = 64


class Turnstile:
    """A bucket of `limit` requests for each name, filled evenly."""

    def __init__(self, rate: Rate, clock: Callable[[], float]) -> None:
        self._most = float(rate.limit)
        self._per_s = rate.limit * 1000 / rate.period_ms
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._inside: Counter[str] = Counter()

    def enter(self, name: str) -> None:
        """One request; raises what says how long to wait."""
        now = self._clock()
        left, at = self._buckets.pop(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_s)
        passes = left >= 1
        self._buckets[name] = (left - 1 if passes else left, now)
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        if not passes:
            raise too_many("too many requests", (1 - left) / self._per_s)

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """While a request is under way; raises where there are too many already."""
        if self._inside[name] >= AT_ONCE_MAX:
            raise too_many(f"more than {AT_ONCE_MAX} requests at the same time", 1)
        self._inside[name] += 1
        try:
            yield
        finally:
            self._inside[name] -= 1
            if not self._inside[name]:
                del self._inside[name]


def too_many(what: str, wait_s: float) -> EverstepError:
    """The refusal, with how long to wait."""
    return EverstepError(
        what,
        code="rate_limited",
        what_to_do="ask again after `Retry-After` seconds",
        details={"retry_after_s": max(1, -int(-wait_s // 1))},
    )
