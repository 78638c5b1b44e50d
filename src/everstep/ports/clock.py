"""Clock: what time it is, and waiting. Pulse: a beat from a thread of its own."""

from asyncio import Timeout
from collections.abc import Callable
from typing import Protocol

from everstep.domain.ids import Instant


class Clock(Protocol):
    """The only way to learn the time."""

    def now(self) -> Instant:
        """Wall clock."""

    def monotonic(self) -> float:
        """Seconds that never go back; suspend counts."""

    async def sleep_until(self, at: Instant) -> None:
        """Wait; wakes at once if `at` has passed."""

    def timeout(self, seconds: float) -> Timeout:
        """An asynchronous context that raises TimeoutError when this clock says so."""


class Pulse(Protocol):
    """Calls `beat` every `period_s` from its own thread, so that a busy loop does not stop it."""

    def start(self, period_s: float, beat: Callable[[], None]) -> None:
        """Begin."""

    def stop(self) -> None:
        """End, and wait until it has."""
