"""Rates: so many calls in so long. GCRA as a pure function; its one number per rate is kept in the store.

The number is the *theoretical arrival time*: when the next call would come if all came evenly. Who asks reserves a
place and learns when it may call; nobody polls, and what was reserved stands whatever dies.
"""

import re
from typing import Final

from everstep.domain.ids import Instant
from everstep.domain.quantities import parse_duration
from everstep.domain.record import record

_TEXT: Final = re.compile(r"([0-9]{1,9})/([^:]+)(?::([0-9]{1,9}))?")
MICROS: Final = 1_000
DAY_MS: Final = 86_400_000


@record
class Rate:
    """`limit` calls per `period_ms`, evenly; `burst` of them may come together."""

    limit: int
    period_ms: int
    burst: int = 1

    @property
    def interval_us(self) -> int:
        """Between two calls."""
        return -(-self.period_ms * MICROS // self.limit)


def parse_rate(text: str) -> Rate | None:
    """`10/1s`, or `10/1s:4`, where four may come together; None if it is not of that form."""
    found = _TEXT.fullmatch(text)
    period = parse_duration(found[2]) if found else None
    burst = int(found[3] or 1) if found else 0
    if found is None or not period or int(found[1]) < 1 or burst < 1:
        return None
    return Rate(limit=int(found[1]), period_ms=period, burst=burst)


@record
class Spent:
    """Calls of one day, counted in days since 1970."""

    day: int
    used: int


def count(quota: int, spent: Spent | None, at: Instant) -> Spent | None:
    """The day's calls with one more; None: there were as many as are allowed."""
    today = at // DAY_MS
    used = spent.used if spent is not None and spent.day == today else 0
    return Spent(day=today, used=used + 1) if used < quota else None


def next_day(at: Instant) -> Instant:
    """When a day's quota is renewed."""
    return Instant((at // DAY_MS + 1) * DAY_MS)


def reserve(rate: Rate, arrival_us: int | None, at: Instant) -> tuple[Instant, int]:
    """When the next call may be made, and the arrival time that is to be kept."""
    now_us = at * MICROS
    due_us = max(now_us, arrival_us or 0)
    tolerance_us = (rate.burst - 1) * rate.interval_us
    go_us = max(now_us, due_us - tolerance_us)
    return Instant(-(-go_us // MICROS)), due_us + rate.interval_us
