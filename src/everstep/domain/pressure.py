"""When little, or too little, is left of something that all tasks need, and when there is enough again. Pure."""

from enum import IntEnum
from typing import Final

from everstep.domain.record import record

LEAST_BYTES: Final = 64 * 1024 * 1024
MOST_BYTES: Final = 1024 * 1024 * 1024
SHARE: Final = 0.01
"""A hundredth of the whole is kept free, but not less and not more than these."""
BUSY: Final = 3
"""So many times as much, and there is little left: less is begun."""
AGAIN: Final = 1.5
"""So many times as much must be free before it goes on, so that nothing flutters."""
STORE: Final = "store"
"""Places in the queue of the store's writer: a quarter of them is kept free."""


class Load(IntEnum):
    """How much one can ask of this machine."""

    EASE = 0
    BUSY = 1
    SHORT = 2


@record
class Reading:
    """How much of something there is: bytes, or places."""

    what: str
    free: int
    total: int

    @property
    def level(self) -> float:
        """The share that is in use."""
        return round(1 - self.free / self.total, 3) if self.total else 1.0


def load_of(reading: Reading, before: Load) -> Load:
    """How it stands with one of them; what was short, or busy, is so until clearly more is free."""
    bytes_kept = min(max(LEAST_BYTES, SHARE * reading.total), MOST_BYTES)
    kept = reading.total / 4 if reading.what == STORE else bytes_kept
    for load, times in ((Load.SHORT, 1), (Load.BUSY, BUSY)):
        if reading.free < kept * times * (AGAIN if before >= load else 1):
            return load
    return Load.EASE
