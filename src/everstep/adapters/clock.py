"""The system's time, and a beat from a thread of its own."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from everstep.domain.ids import Instant

# Unlike the monotonic clock of Linux it counts while the machine sleeps: a lease runs out in a closed laptop too.
_monotonic: Final[Callable[[], float]] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)

WAIT_S_MAX: Final = 15.0
"""Waits are cut: the loop's clock stands still in a closed laptop, and the wall clock may be set."""


class SystemClock:
    """Wall clock, boot clock, and waiting by the wall clock. Timers belong to one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> Instant:
        """Wall clock."""
        return Instant(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """Seconds that never go back; suspend counts where the system can tell."""
        return _monotonic()

    async def sleep_until(self, at: Instant) -> None:
        """Wait; wakes at once if `at` has passed."""
        while (left_ms := at - self.now()) > 0:  # noqa: ASYNC110 -- time itself is waited for
            await asyncio.sleep(min(left_ms / 1000, WAIT_S_MAX))

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Call it on the running loop when the time is up."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.call_later(seconds, call)


class ThreadPulse:
    """Beats until it is stopped, whatever the event loop does. One that raises ends: no beat is no sign of life."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, period_s: float, beat: Callable[[], None]) -> None:
        """Begin."""
        assert self._thread is None, "a pulse beats for one engine at a time"
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=_beat, args=(period_s, beat, self._stopped), name="everstep-pulse", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End, and wait until it has. A beat may stop its own pulse: then it ends when that beat returns."""
        self._stopped.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()


def _beat(period_s: float, beat: Callable[[], None], stopped: threading.Event) -> None:
    due = time.monotonic() + period_s
    while not stopped.wait(max(0.0, due - time.monotonic())):
        beat()
        due = max(due + period_s, time.monotonic())  # late beats are not made up for
