"""Regression: whether the calls of a step have become slower. One rule, judged on whole windows.

The last 20 calls are slower than the 100 before them if their median is more than half again as long (and the
difference can be felt), and a rank test says that chance would do this in fewer than one of a hundred cases. It is
over when 20 calls are no longer that much slower than those 100 were.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import erfc, sqrt
from statistics import median
from typing import Final

from everstep.domain.record import hot_record, record

LAST: Final = 20
BEFORE: Final = 100
RATIO: Final = 1.5
P_MAX: Final = 0.01
FELT_MS: Final = 5.0
"""Smaller differences are noise of the machine, whatever their ratio."""


@hot_record
class Timed:
    """One call that succeeded: of which step, by which tool, how long."""

    owner: str
    plan: str
    step: str
    tool: str
    ms: float


@record
class Regression:
    """A step that has become slower."""

    plan: str
    step: str
    tool: str
    before_s: float
    now_s: float
    p: float
    n: int
    """Calls that were looked at."""

    @property
    def ratio(self) -> float:
        """How many times as long."""
        return self.now_s / self.before_s if self.before_s else float("inf")


def series_of(calls: Iterable[Timed]) -> dict[tuple[str, str, str, str], list[float]]:
    """The times of each step with each tool, in the order of the calls."""
    series: dict[tuple[str, str, str, str], list[float]] = {}
    for call in calls:
        series.setdefault((call.owner, call.plan, call.step, call.tool), []).append(call.ms)
    return series


@record
class Slower:
    """Medians before and now, and how probable it is by chance."""

    was_ms: float
    now_ms: float
    p: float


def judged(times_ms: Sequence[float]) -> Slower | None:
    """Whether they have become slower and still are. Each call is judged once, with the 19 beside it."""
    found: Slower | None = None
    for end in range(LAST + BEFORE, len(times_ms) + 1, LAST):
        now_ms = median(times_ms[end - LAST : end])
        if found is None:
            found = _slower(times_ms[end - LAST : end], times_ms[end - LAST - BEFORE : end - LAST])
        elif _much(now_ms, found.was_ms):
            found = replace(found, now_ms=now_ms)
        else:
            found = None
    return found


def _slower(now: Sequence[float], before: Sequence[float]) -> Slower | None:
    now_ms, was_ms = median(now), median(before)
    if not _much(now_ms, was_ms):
        return None
    p = rank_test(now, before)
    return Slower(was_ms=was_ms, now_ms=now_ms, p=p) if p < P_MAX else None


def _much(now_ms: float, was_ms: float) -> bool:
    return now_ms > RATIO * was_ms and now_ms - was_ms >= FELT_MS


def regressions(calls: Iterable[Timed]) -> list[tuple[str, Regression]]:
    """Of each owner: steps that have become slower."""
    found = []
    for (owner, plan, step, tool), times in series_of(calls).items():
        told = judged(times)
        if told is not None:
            before_s, now_s = told.was_ms / 1000, told.now_ms / 1000
            slow = Regression(plan=plan, step=step, tool=tool, before_s=before_s, now_s=now_s, p=told.p, n=len(times))
            found.append((owner, slow))
    return found


def rank_test(these: Sequence[float], those: Sequence[float]) -> float:
    """Mann and Whitney, one-sided, with ties: how probable it is by chance that `these` are as much longer."""
    ordered = sorted([(value, True) for value in these] + [(value, False) for value in those])
    n, m = len(these), len(those)
    rank_sum = ties = 0.0
    at = 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        count = end - at
        rank_sum += sum(mine for _, mine in ordered[at:end]) * (at + 1 + end) / 2
        ties += count**3 - count
        at = end
    above = rank_sum - n * (n + 1) / 2
    total = n + m
    spread = sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))))
    if spread == 0:
        return 1.0
    return erfc((above - n * m / 2 - 0.5) / spread / sqrt(2)) / 2
