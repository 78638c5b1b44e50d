"""Sleep until somebody calls, or until the earliest of some times."""

import asyncio

from everstep.domain.ids import Instant
from everstep.ports.clock import Clock


class Wake:
    """What one sleeper listens to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._called = asyncio.Event()
        self.next_due: Instant | None = None
        """The earliest time at which there is something to do."""

    def call(self) -> None:
        """There is something to do now."""
        self._called.set()

    def listen(self) -> None:
        """From now on: what was called before is being looked at."""
        self._called.clear()

    def due_by(self, at: Instant | None) -> None:
        """There will be something to do at this time."""
        if at is not None and (self.next_due is None or at < self.next_due):
            self.next_due = at
            self._called.set()

    async def wait(self) -> None:
        """Until called, or until it is time."""
        if self.next_due is None:
            await self._called.wait()
            return
        called = asyncio.ensure_future(self._called.wait())
        timer = asyncio.ensure_future(self._clock.sleep_until(self.next_due))
        try:
            await asyncio.wait((called, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            called.cancel()
            timer.cancel()
