"""A clock that tests move. Time stands still until somebody says how much has passed."""

import asyncio
import heapq
import threading
from collections.abc import Callable
from itertools import count
from typing import Final

from everstep.domain.ids import Instant
from everstep.domain.quantities import parse_duration

START: Final = Instant(1_800_000_000_000)
SETTLE_ROUNDS: Final = 200
"""Turns of the loop that are left to the engine before time moves on: far more than any lap takes."""
QUIET_ROUNDS: Final = 5
"""Turns in which nothing went on: then nothing will, unless a thread works for somebody."""


class VirtualTimer:
    """A call that is still to come, unless cancelled."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """It is not to come."""
        self._call = None

    def fire(self) -> None:
        """Its time has come."""
        if self._call is not None:
            self._call()


class VirtualClock:
    """Answers the Clock port; `advance` is for tests."""

    def __init__(self, start: Instant = START) -> None:
        self._now = start
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._bystanders = frozenset(threading.enumerate())
        """Threads that were here before, and work for nobody who waits for this clock."""

    def now(self) -> Instant:
        """Virtual time."""
        return self._now

    def monotonic(self) -> float:
        """The same, in seconds."""
        return self._now / 1000

    async def sleep_until(self, at: Instant) -> None:
        """Wait until a test has moved the clock this far."""
        if at <= self._now:
            return
        woken = asyncio.get_running_loop().create_future()
        self._at(at, lambda: None if woken.done() else woken.set_result(None))
        await woken

    def call_later(self, seconds: float, call: Callable[[], None]) -> "VirtualTimer":
        """Call it when a test has moved the clock this far."""
        timer = VirtualTimer(call)
        self._at(Instant(self._now + round(seconds * 1000)), timer.fire)
        return timer

    async def advance(self, duration: str) -> None:
        """Let time pass: timer by timer, and the engine settles after each."""
        length = parse_duration(duration)
        if length is None:
            raise ValueError(f"'{duration}' is not a duration, write 500ms, 30s, 1h30m")
        until = self._now + length
        await self.settle()
        while self._timers and self._timers[0][0] <= until:
            await self.skip()
            await self.settle()
        self._now = Instant(max(self._now, until))
        await self.settle()

    async def settle(self) -> None:
        """Let everything go on that needs no time: until all is quiet, or for long if a thread may be at work."""
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        quiet = 0
        for _ in range(SETTLE_ROUNDS):
            await asyncio.sleep(0)
            quiet = 0 if ready is None or ready else quiet + 1
            if quiet >= QUIET_ROUNDS and self._bystanders.issuperset(threading.enumerate()):
                return

    async def skip(self) -> bool:
        """Let time pass until the next timer; false if nobody waits for any."""
        if not self._timers:
            return False
        at, _, fire = heapq.heappop(self._timers)
        self._now = Instant(max(self._now, at))
        fire()
        return True

    def _at(self, at: int, fire: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (at, next(self._order), fire))


class NoPulse:
    """No beats: in virtual time nobody dies of silence."""

    def start(self, period_s: float, beat: Callable[[], None]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""
