"""How long a call will take: a guess of its adapter, history, or both. Pure: what is known comes in as values.

A `Span` is the answer for one kind of call: equally likely times in order, how often a retry follows, what a failed
try and the wait after it take. What is known of nothing is None, and stays None: there is no made-up number.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Final

from everstep.domain.ids import Instant
from everstep.domain.record import record
from everstep.domain.sketch import Sketch

DRAWS: Final = 256
"""Equally likely times of a span, and futures of a task."""
ENOUGH: Final = 20
"""From so many calls on, history speaks for itself."""
TRUST: Final = 5
"""So many calls weigh as much as the guess of an adapter."""
DOUBT: Final = 2
"""Without a guess, so many calls weigh as much as doubt about the few there are."""
DOUBT_SIGMA: Final = 0.8
SPREAD_MAX: Final = 0.5
HEAVY: Final = 2.0
"""The tail of what takes longer than anything before it: having taken twice as long, it may do so again."""
RETRIES_MAX: Final = 0.9
_TENTH: Final = NormalDist().inv_cdf(0.9)


@record
class Prior:
    """A guess at the seconds a call takes, before there is history; alike calls have the same size class."""

    p10_s: float
    p50_s: float
    p90_s: float
    size_class: str = ""


@dataclass(slots=True)
class Calls:
    """What the calls of one tool, of one size class, came to."""

    succeeded: Sketch = field(default_factory=Sketch)
    failed: Sketch = field(default_factory=Sketch)
    retry: Sketch = field(default_factory=Sketch)

    def add(self, outcome: str, sketch: Sketch) -> None:
        """One more row of history. What was cut off, or died, says nothing about how long it takes."""
        mine = {"succeeded": self.succeeded, "failed": self.failed, "timed_out": self.failed, "retry": self.retry}
        if outcome in mine:
            mine[outcome].merge(sketch)

    @property
    def n(self) -> int:
        """Successes that are remembered."""
        return int(self.succeeded.n)

    @property
    def retry_share(self) -> float:
        """How often one more call follows."""
        calls = self.succeeded.n + self.failed.n
        return min(RETRIES_MAX, self.retry.n / calls) if calls else 0.0


@record
class Span:
    """What is known of one call."""

    times_s: tuple[float, ...]
    """DRAWS equally likely ones, in order."""
    basis: str
    n: int
    spread: float = 0.0
    """How far all of them may be off together, because few were seen: a share."""
    retry_share: float = 0.0
    lost_s: tuple[float, ...] = (0.0,)
    """What a failed try and the wait after it take, in order."""

    @property
    def median_s(self) -> float:
        """The weight of a step."""
        return self.times_s[len(self.times_s) // 2]


@record
class Estimate:
    """Seconds of work left: 80 % of all futures lie between p10 and p90. Numbers are None if nobody can know."""

    p10: float | None
    p50: float | None
    p90: float | None
    basis: str | None
    n: int
    waiting_on: str | None = None
    as_of: Instant | None = None


UNKNOWN: Final = Estimate(p10=None, p50=None, p90=None, basis=None, n=0)


@cache
def _shares() -> tuple[float, ...]:
    return tuple((draw + 0.5) / DRAWS for draw in range(DRAWS))


@cache
def scores() -> tuple[float, ...]:
    """The same as normal scores."""
    return tuple(NormalDist().inv_cdf(share) for share in _shares())


def span_of(prior: Prior | None, calls: Calls | None, pace: float = 1.0) -> Span | None:
    """All that is known of a call; `pace`: how much slower than guessed this task's calls were so far."""
    n = 0 if calls is None else calls.n
    if calls is None or n == 0:
        return None if prior is None else Span(times_s=_guessed(prior, pace), basis="prior", n=0)
    history = calls.succeeded.curve()
    seen = [history.at(share) / 1000 for share in _shares()]
    if prior is None:
        doubted = _doubted(seen, n) if n < ENOUGH else seen
        basis = "history"
    else:
        doubted = seen if n >= ENOUGH else _mixed(seen, _guessed(prior, pace), n / (n + TRUST))
        basis = "history" if n >= ENOUGH else "mixed"
    return Span(
        times_s=tuple(doubted),
        basis=basis,
        n=n,
        spread=_spread(seen, n),
        retry_share=calls.retry_share,
        lost_s=_lost(calls),
    )


def exactly(seconds: float) -> Span:
    """It takes as long as it says: a wait."""
    return Span(times_s=(max(0.0, seconds),) * DRAWS, basis="prior", n=0)


def _guessed(prior: Prior, pace: float) -> tuple[float, ...]:
    """Lognormal below and above the median, so that the three numbers are met."""
    middle = prior.p50_s * pace
    if middle <= 0:
        return (0.0,) * DRAWS
    below = log(prior.p50_s / prior.p10_s) / _TENTH if prior.p10_s > 0 else 1.0
    above = log(prior.p90_s / prior.p50_s) / _TENTH
    return tuple(middle * exp(score * (below if score < 0 else above)) for score in scores())


def _doubted(seen: list[float], n: int) -> list[float]:
    """A few times, and doubt about them: the truth may lie beyond what was seen."""
    middle = seen[DRAWS // 2]
    wide = [middle * exp(DOUBT_SIGMA * score) for score in scores()]
    return _mixed(seen, tuple(wide), n / (n + DOUBT))


def _mixed(seen: list[float], guessed: tuple[float, ...], weight: float) -> list[float]:
    """So much of the one, the rest of the other, in order."""
    first = round(weight * DRAWS)
    rest = DRAWS - first
    ours = [seen[int((draw + 0.5) * DRAWS / first)] for draw in range(first)]
    theirs = [guessed[int((draw + 0.5) * DRAWS / rest)] for draw in range(rest)]
    return sorted([*ours, *theirs])


def _spread(seen: list[float], n: int) -> float:
    """The standard error of the mean of so many, as a share of it."""
    mean = sum(seen) / DRAWS
    if mean <= 0:
        return 0.0
    variance = sum((one - mean) ** 2 for one in seen) / DRAWS
    return min(SPREAD_MAX, sqrt(variance / max(1, n - 3)) / mean)


def _lost(calls: Calls) -> tuple[float, ...]:
    """A failed try and the wait after it, quantile by quantile."""
    parts = [sketch.curve() for sketch in (calls.failed, calls.retry) if sketch.n > 0]
    if not parts:
        return (0.0,)
    return tuple(sum(curve.at((draw + 0.5) / 16) for curve in parts) / 1000 for draw in range(16))


def after(span: Span, elapsed_s: float) -> Span:
    """What is left of a call that has taken so long already: of all times, those that are longer."""
    longer = span.times_s[bisect_right(span.times_s, elapsed_s) :]
    if len(longer) * 32 >= DRAWS:
        left = tuple(longer[int((draw + 0.5) * len(longer) / DRAWS)] - elapsed_s for draw in range(DRAWS))
    else:  # longer than anything seen
        left = tuple(elapsed_s * ((1 - share) ** (-1 / HEAVY) - 1) for share in _shares())
    return replace(span, times_s=left)


def pace_of(took: list[tuple[float, float]]) -> float:
    """How much slower calls of this task were than guessed, from pairs (took, guessed); one doubt speaks for 1."""
    ratios = [log(max(real, 0.001) / guessed) for real, guessed in took if guessed > 0]
    return exp(sum(ratios) / (len(ratios) + 0.5)) if ratios else 1.0
