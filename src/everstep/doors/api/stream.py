"""One watcher of one task: frames in order, live, until the task ends, the watcher leaves or the engine stops.

The desk joins the live tail before it reads the journal, so a watcher gets exactly `after+1, after+2, …`. A watcher
that does not read is not waited for: the desk's queue overflows and its reader goes back to the journal.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Final

from everstep.domain.errors import StoreError
from everstep.domain.fold import fold
from everstep.domain.ids import Instant, Seq, StepPath, TaskId
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.doors.api import frames
from everstep.doors.api.context import Asked, Backing, find_task, journal
from everstep.doors.api.request import flag_in, number_in
from everstep.ports.store import Journaled
from everstep.wire.event import decode
from everstep.wire.task import task_json

QUEUE_MAX: Final = 100
TICK_S: Final = 0.25
"""Not more often, and at least every fourth time while something is in flight."""
TICKS_SKIPPED_MAX: Final = 3
ENDS: Final = frozenset({"task.completed", "task.failed", "task.cancelled"})


def wanted_types(asked: Asked) -> tuple[str, ...]:
    """Types, or beginnings such as `step.`; none: all."""
    return tuple(filter(None, asked.query.get("types", "").split(",")))


def of_type(event: Journaled, types: tuple[str, ...]) -> bool:
    """Whether an event was asked for."""
    return not types or any(event.type == one or (one[-1] == "." and event.type.startswith(one)) for one in types)


async def watch(back: Backing, asked: Asked, closing: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """The frames of a task's stream; raises before the first one where there is none."""
    state = await find_task(back, asked)
    watcher = Watcher(back, asked, state)
    yield frames.hello(state, back.version, back.incarnation)
    async for frame in watcher.begin():
        yield frame
    async with aclosing(watcher.follow(closing)) as following:
        async for frame in following:
            yield frame


class Watcher:
    """Where one watcher is."""

    def __init__(self, back: Backing, asked: Asked, state: TaskState) -> None:
        self._back = back
        self._state = state
        self._head = state.seq
        self._after = Seq(number_in(asked.query, "after", 0, most=2**53)) if "after" in asked.query else None
        self._last = state.seq if self._after is None else self._after
        self._types = wanted_types(asked)
        self._ticks = flag_in(asked.query, "ticks", default=True)
        self._until_end = asked.query.get("until") == "end"
        self._live = False
        self._notes: dict[StepPath, tuple[float, str | None]] = {}
        self._noted = False
        self._skipped = 0
        self._silent_since = time.monotonic()
        self._queue: asyncio.Queue[Journaled | None] = asyncio.Queue(QUEUE_MAX)

    async def begin(self) -> AsyncIterator[bytes]:
        """What comes before the events: a snapshot, unless the watcher knows the task up to somewhere."""
        ahead = self._last > self._head
        if ahead:
            yield frames.resync_required(self._state, "ahead")
        if ahead or self._after is None:
            history = await journal(self._back, self._state.id)
            yield frames.snapshot(self._state, task_json(self._state, history), reset=ahead)
            self._last = self._head
        if frame := self._caught_up():
            yield frame

    async def follow(self, closing: asyncio.Event) -> AsyncGenerator[bytes, None]:
        """Events as they become durable, ticks and heartbeats in between."""
        if self._state.terminal and self._until_end and self._last >= self._head:
            return
        leave = self._back.listen(self._hear) if self._back.listen and self._ticks else None
        pump = asyncio.create_task(self._pump())
        stop = asyncio.create_task(closing.wait())
        getter = asyncio.create_task(self._queue.get())
        try:
            while True:
                await asyncio.wait((getter, stop), timeout=self._patience(), return_when=asyncio.FIRST_COMPLETED)
                if getter.done():
                    event = getter.result()
                    if event is None:
                        break
                    for frame in self._told(event):
                        yield frame
                    if self._until_end and event.type in ENDS and event.seq >= self._head:
                        return
                    getter = asyncio.create_task(self._queue.get())
                elif stop.done():
                    break
                elif volatile := self._meanwhile():
                    self._silent_since = time.monotonic()
                    yield volatile
            yield frames.bye("shutdown", self._last)
        finally:
            if leave is not None:
                leave()
            for task in (pump, stop, getter):
                task.cancel()
            await asyncio.gather(pump, stop, getter, return_exceptions=True)

    async def _pump(self) -> None:
        with suppress(StoreError):
            async for event in self._back.desk.events(self._state.id, self._last, follow=True):
                await self._queue.put(event)
        await self._queue.put(None)

    def _told(self, event: Journaled) -> list[bytes]:
        if event.seq > self._state.seq:
            fold(self._state, self._state.owner, decode(event.encoded))
        self._last = event.seq
        self._silent_since = time.monotonic()
        told = [frames.event(event)] if of_type(event, self._types) else []
        if frame := self._caught_up():
            told.append(frame)
        return told

    def _caught_up(self) -> bytes | None:
        if self._live or self._last < self._head:
            return None
        self._live = True
        return frames.live(self._last)

    # Between events

    def _hear(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """Called from any thread: only keeps the newest."""
        if task == self._state.id:
            self._notes[step] = (fraction, text)
            self._noted = True

    def _ticking(self) -> bool:
        return self._ticks and self._live and self._state.status is TaskStatus.RUNNING and bool(self._state.open)

    def _patience(self) -> float:
        if self._ticking():
            return TICK_S
        return max(0.0, self._silent_since + frames.HEARTBEAT_S - time.monotonic())

    def _meanwhile(self) -> bytes | None:
        now = Instant(time.time_ns() // 1_000_000)
        if not self._ticking():
            return frames.heartbeat(self._last, now)
        if not self._noted and self._skipped < TICKS_SKIPPED_MAX:
            self._skipped += 1
            return None
        self._noted, self._skipped = False, 0
        return frames.tick(self._state, self._notes, now)
