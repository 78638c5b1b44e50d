"""Outlet: what waits for one watcher. Bounded: whoever does not read is let go, with the place it has come to.

Whoever speaks only puts frames in; nobody ever waits for a reader. Ticks and output give way first.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from everstep.domain.record import record
from everstep.doors.api.frames import Frame
from everstep.settings.parts import EventSettings

VOLATILE: Final = frozenset({"tick", "output"})


@record
class End:
    """Why a stream is over: the close code, and a word for those that have no codes."""

    code: int
    reason: str


ENDED: Final = End(code=1000, reason="until=end")
SHUTDOWN: Final = End(code=1001, reason="shutdown")
SLOW: Final = End(code=1013, reason="slow_consumer")
BROKEN: Final = End(code=1011, reason="store_unavailable")
GONE: Final = End(code=4404, reason="task_deleted")


class Outlet:
    """One watcher's queue."""

    __slots__ = ("_bytes", "_bytes_max", "_frames", "_frames_max", "_ticks", "_waiter", "dropped", "end", "spoke_at")

    def __init__(self, bounds: EventSettings) -> None:
        self._frames: deque[Frame] = deque()
        self._ticks: dict[str, Frame] = {}
        self._bytes = 0
        self._frames_max = bounds.queue
        self._bytes_max = bounds.queue_bytes
        self._waiter: asyncio.Future[None] | None = None
        self.end: End | None = None
        self.spoke_at = time.monotonic()
        """When something was last put in."""
        self.dropped: Callable[[], None] | None = None
        """Whom to tell when the watcher is let go while it may be stuck in a frame."""

    # What is said

    def put(self, frame: Frame) -> None:
        """To be sent in its turn."""
        if self.end is not None:
            return
        if self._full(frame):
            if frame.type in VOLATILE:
                return
            self._make_room()
            if self._full(frame):
                self.drop(SLOW)
                return
        self._frames.append(frame)
        self._bytes += len(frame.data)
        self._wake()

    def tick(self, task: str, frame: Frame) -> None:
        """The newest of each task wins; it is sent when nothing else waits."""
        if self.end is None:
            self._ticks[task] = frame
            self._wake()

    def finish(self, end: End) -> None:
        """What waits is still sent."""
        if self.end is None:
            self.end = end
            self._wake()

    def drop(self, end: End) -> None:
        """Let the watcher go now; what waits is not sent."""
        self._frames.clear()
        self._ticks.clear()
        self._bytes = 0
        self.end = end
        self._wake()
        if self.dropped is not None:
            self.dropped()

    def _full(self, frame: Frame) -> bool:
        return len(self._frames) >= self._frames_max or self._bytes + len(frame.data) > self._bytes_max

    def _make_room(self) -> None:
        self._ticks.clear()
        self._frames = deque(frame for frame in self._frames if frame.type not in VOLATILE)
        self._bytes = sum(len(frame.data) for frame in self._frames)

    def _wake(self) -> None:
        self.spoke_at = time.monotonic()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What is heard

    async def next(self) -> Frame | None:
        """The next frame; None: there will be no more, and `end` says why."""
        while True:
            if self._frames:
                frame = self._frames.popleft()
                self._bytes -= len(frame.data)
                return frame
            if self._ticks:
                return self._ticks.pop(next(iter(self._ticks)))
            if self.end is not None:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
