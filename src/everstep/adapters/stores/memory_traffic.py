"""What all tasks share, in dictionaries."""

from collections.abc import Sequence

from everstep.domain.ids import Instant
from everstep.domain.rate import reserve
from everstep.ports.traffic import Halt, Reservation


class MemoryTraffic:
    """Rates and the halt of a store in memory."""

    def __init__(self) -> None:
        self._arrivals: dict[str, int] = {}
        self.halt: Halt | None = None

    async def reserve(self, wishes: Sequence[Reservation]) -> Sequence[Instant]:
        """When each may call; its place is taken."""
        granted = []
        for wish in wishes:
            at, self._arrivals[wish.name] = reserve(wish.rate, self._arrivals.get(wish.name), wish.at)
            granted.append(at)
        return granted

    async def set_halt(self, halt: Halt | None) -> None:
        """Halt, or go on."""
        self.halt = halt

    async def get_halt(self) -> Halt | None:
        """Whether everything is halted."""
        return self.halt
