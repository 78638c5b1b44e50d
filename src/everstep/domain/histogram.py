"""Figures as they are counted: a histogram of seconds in fixed buckets, and families of samples with their labels."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from everstep.domain.record import record

BOUNDS_S: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0,
)  # fmt: skip
"""What each bucket holds at most; longer ones fall into a last one."""

Labels: TypeAlias = tuple[str, ...]


class Histogram:
    """How many times fell into each bucket, and their sum. To observe costs a fraction of a microsecond."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    def quantile(self, share: float) -> float | None:
        """So many of them took at most this long, as well as the buckets tell; None before the first."""
        wanted, below = share * self.n, 0
        for k, count in enumerate(self.counts):
            if count and below + count >= wanted:
                low = BOUNDS_S[k - 1] if k else 0.0
                high = BOUNDS_S[k] if k < len(BOUNDS_S) else low
                return low + (high - low) * (wanted - below) / count
            below += count
        return None

    @property
    def n(self) -> int:
        """How many there were."""
        return sum(self.counts)


@record
class Family:
    """One figure, by the values of its labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()
    samples: Mapping[Labels, float | Histogram]
