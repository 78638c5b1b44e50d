"""Clock: what time it is, and waiting. Pulse: a beat from a thread of its own."""

from collections.abc import Callable
from typing import Protocol

from everstep.domain.ids import Instant


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """It is not to come; cancelling twice is harmless."""


class Clock(Protocol):
    """The only way to learn the time."""

    def now(self) -> Instant:
        """Wall clock."""

    def monotonic(self) -> float:
        """Seconds that never go back; suspend counts."""

    async def sleep_until(self, at: Instant) -> None:
        """Wait; wakes at once if `at` has passed."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call it on the loop when this clock says so, unless cancelled before."""


class Pulse(Protocol):
    """Calls `beat` every `period_s` from its own thread, so that a busy loop does not stop it."""

    def start(self, period_s: float, beat: Callable[[], None]) -> None:
        """Begin."""

    def stop(self) -> None:
        """End, and wait until it has."""
