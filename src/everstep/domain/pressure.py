"""When too little is left of something that all tasks need, and when there is enough again. Pure."""

from typing import Final

from everstep.domain.record import record

LEAST_BYTES: Final = 64 * 1024 * 1024
MOST_BYTES: Final = 1024 * 1024 * 1024
SHARE: Final = 0.01
"""A hundredth of the whole is kept free, but not less and not more than these."""
AGAIN: Final = 1.5
"""So many times as much must be free before it goes on, so that nothing flutters."""


@record
class Reading:
    """How much of something there is, in bytes."""

    what: str
    free: int
    total: int

    @property
    def level(self) -> float:
        """The share that is in use."""
        return round(1 - self.free / self.total, 3) if self.total else 1.0


def short_of(reading: Reading, *, already: bool) -> bool:
    """Whether too little is left; once it was, more is wanted."""
    kept = min(max(LEAST_BYTES, SHARE * reading.total), MOST_BYTES)
    return reading.free < kept * (AGAIN if already else 1)
