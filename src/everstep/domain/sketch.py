"""Sketch: a distribution of times in a few numbers. Two sketches add up to the sketch of both.

A time falls into a bucket that is a tenth wider than the one before, so every quantile is right within five per cent,
from a millisecond to years, in at most a few hundred counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, log
from typing import Final

GROWTH: Final = 1.1
_LOG: Final = log(GROWTH)
_MOST: Final = 300
"""About eighty years: longer ones are counted there."""


def bucket_of(ms: float) -> int:
    """0: below a millisecond; else the power of GROWTH, from 1."""
    return 0 if ms < 1 else min(_MOST, 1 + int(log(ms) / _LOG + 1e-9))


@dataclass(slots=True)
class Sketch:
    """How many times fell into each bucket, how many there are, and their sum."""

    counts: dict[int, float] = field(default_factory=dict)
    n: float = 0
    total_ms: float = 0

    def add(self, ms: float, count: float = 1) -> None:
        """So many more of this length; a clock that went back counts as no time."""
        bucket = bucket_of(ms)
        self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.n += count
        self.total_ms += max(0.0, ms) * count

    def merge(self, other: "Sketch") -> None:
        """All that the other one has seen, too."""
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.n += other.n
        self.total_ms += other.total_ms

    def fade(self, most: float, to: float) -> None:
        """Of more than `most` only the weight of `to` is kept: what comes now counts more than what was long ago."""
        if self.n <= most:
            return
        share = to / self.n
        self.counts = {bucket: count * share for bucket, count in self.counts.items()}
        self.n = to
        self.total_ms *= share

    def quantile_ms(self, share: float) -> float | None:
        """The time that this share stays below; None if nothing was seen."""
        return None if self.n <= 0 else self.curve().at(share)

    def curve(self) -> "Curve":
        """The same, ready to be asked often."""
        below, bounds = 0.0, []
        for bucket in sorted(self.counts):
            below += self.counts[bucket]
            bounds.append((below / self.n, bucket))
        return Curve(bounds)


class Curve:
    """The inverse distribution: from a share to a time. Evenly spread, on a log scale, inside each bucket."""

    __slots__ = ("_bounds",)

    def __init__(self, bounds: list[tuple[float, int]]) -> None:
        self._bounds = bounds

    def at(self, share: float) -> float:
        """In milliseconds."""
        before = 0.0
        bounds = self._bounds
        low, high = 0, len(bounds) - 1
        while low < high:
            middle = (low + high) // 2
            if bounds[middle][0] < share:
                low = middle + 1
            else:
                high = middle
        if low:
            before = bounds[low - 1][0]
        upto, bucket = bounds[low]
        inside = min(1.0, max(0.0, (share - before) / (upto - before)))
        return inside if bucket == 0 else exp(_LOG * (bucket - 1 + inside))


def sketch_of(times_ms: Iterable[float]) -> Sketch:
    """Of these."""
    made = Sketch()
    for ms in times_ms:
        made.add(ms)
    return made
