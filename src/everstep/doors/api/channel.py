"""Channel: one watched task, however many watch it. Its events are folded, spelled and ticked once for all of them.

It follows the journal by itself, so it knows a task up to `last`. Whoever has read the journal that far joins in the
same turn of the loop, and gets what comes after: no gap, no duplicate, nothing to buffer.
"""

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from everstep.domain.errors import EngineClosed, EverstepError, NotFound
from everstep.domain.events import Who
from everstep.domain.fold import fold
from everstep.domain.ids import Instant, Seq, StepPath, TaskId
from everstep.domain.simulate import Outlook
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.doors.api import frames
from everstep.doors.api.frames import Frame
from everstep.doors.api.outlet import BROKEN, ENDED, GONE, SHUTDOWN, End, Outlet
from everstep.facade.desk import Desk
from everstep.ports.store import Journaled
from everstep.wire.event import Unreadable, decode

ENDS: Final = frozenset({"task.completed", "task.failed", "task.cancelled"})
STANDS: Final = ENDS | {"task.paused"}
TICKS_SKIPPED_MAX: Final = 3
"""Without news ticks are left out, but not more than so many in a row."""
FORESEEN_MS: Final = 2_000
"""So long an estimate is shown again if nothing happens: to play the rest of a task costs more than to tell of it."""
OUTPUT_BYTES_MAX: Final = 16 * 1024
"""Of one frame."""
OUTPUT_KEPT_MAX: Final = 16 * OUTPUT_BYTES_MAX
"""Of one call that speaks faster than it is shown."""


def of_type(event: Journaled, types: tuple[str, ...]) -> bool:
    """Whether an event was asked for: types, or beginnings such as `step.`; none: all."""
    return not types or any(event.type == one or (one[-1] == "." and event.type.startswith(one)) for one in types)


@dataclass(slots=True, eq=False)
class Seat:
    """One watcher: what it wants, and how far it is."""

    who: Who
    outlet: Outlet
    place: int
    """Everything up to here it has seen: a seq, or a place in the line of all."""
    types: tuple[str, ...] = ()
    ticks: bool = True
    ends_from: int | None = None
    """The stream is over with an end of the task at or after this."""

    def event(self, event: Journaled, frame: Frame, place: int) -> None:
        """The next one; what it has seen already is left out."""
        if place <= self.place:
            return
        self.place = place
        if of_type(event, self.types):
            self.outlet.put(frame)
        if self.ends_from is not None and event.type in ENDS and event.seq >= self.ends_from:
            self.outlet.finish(ENDED)


class Spoken:
    """Text of one call that waits to be shown. Any thread may add to it."""

    __slots__ = ("_bytes", "_full", "_lock", "_pieces", "n")

    def __init__(self) -> None:
        self._pieces: deque[str | None] = deque()
        self._bytes = 0
        self._full = False
        self._lock = threading.Lock()
        self.n = 0
        """Of the last frame; one that was left out counts."""

    def add(self, text: str) -> None:
        """One more piece; what comes faster than it is shown is left out, and the count shows it."""
        with self._lock:
            if self._bytes > OUTPUT_KEPT_MAX:
                self._full = True
                return
            if self._full:
                self._full = False
                self._pieces.append(None)
            self._pieces.append(text)
            self._bytes += len(text)

    def take(self) -> str:
        """The next frame's worth; empty if there is nothing."""
        taken: list[str] = []
        with self._lock:
            while self._pieces:
                piece = self._pieces[0]
                if piece is None and taken:
                    break
                self._pieces.popleft()
                self.n += piece is None
                taken.append(piece or "")
            whole = "".join(taken)
            text = whole.encode(errors="replace")[:OUTPUT_BYTES_MAX].decode(errors="ignore")
            if len(text) < len(whole):
                self._pieces.appendleft(whole[len(text) :])
            self._bytes -= len(text)
        self.n += bool(text)
        return text


class Channel:
    """One watched task."""

    def __init__(self, desk: Desk, task: TaskId, who: Who) -> None:
        self._desk = desk
        self._who = who
        self.task = task
        self.users = 0
        self.last = Seq(0)
        self.seats: list[Seat] = []
        self._beside: Sequence[Seat] = ()
        self.end: End | None = None
        self.ready = asyncio.Event()
        self._state: TaskState | None = None
        self._notes: dict[StepPath, tuple[float, str | None]] = {}
        self._noted = False
        self._tick_at = time.monotonic() - random.random() * TICKS_SKIPPED_MAX / 2  # noqa: S311 -- not all at once
        self._shown = False
        self._foreseen: Outlook | None = None
        self._foreseen_at = Instant(0)
        self._foreseeing: asyncio.Task[None] | None = None
        self._spoken: dict[tuple[StepPath, int], Spoken] = {}
        self._following = asyncio.create_task(self._follow())

    # Events

    async def _follow(self) -> None:
        """The journal, then live, until the engine stops or the task is gone."""
        end = SHUTDOWN
        try:
            self._state = await self._desk.get(self.task, self._who)
            self.last = self._state.seq
            self.ready.set()
            async for event in self._desk.events(self.task, self.last, follow=True):
                await self._happened(event)
            await self._desk.get(self.task, self._who)
        except EngineClosed:
            pass
        except NotFound:
            end = GONE
        except EverstepError:
            end = BROKEN
        finally:
            self.ready.set()
        self.stop(end)

    async def _happened(self, event: Journaled) -> None:
        assert self._state is not None
        if self._spoken:
            self.show_output(whole=True)
        frame = frames.event(event)
        self.last = event.seq
        self._foreseen = None
        self._noted = True  # how far it is now follows at once
        for seat in self.seats:
            seat.event(event, frame, event.seq)
        try:
            fold(self._state, self._state.owner, decode(event.encoded))
            self._desk.monitoring.figures.delivery_s.observe((self._desk.now - self._state.updated_at) / 1000)
        except Unreadable:  # a plan that is kept elsewhere
            self._state = await self._desk.get(self.task, self._who)
        if self._spoken:
            self._forget_ended()

    def join(self, seat: Seat) -> bool:
        """Take part from here on; False: read the journal up to `last` first."""
        if self.end is not None:
            seat.outlet.finish(self.end)
            return True
        if seat.place < self.last:
            return False
        self.seats.append(seat)
        self._shown = self._shown or seat.ticks
        return True

    def leave(self, seat: Seat) -> None:
        """Take part no more; leaving twice is harmless."""
        if seat in self.seats:
            self.seats.remove(seat)
            self._shown = any(one.ticks for one in (*self.seats, *self._beside))

    def tell_too(self, seats: Sequence[Seat]) -> None:
        """Who watches all tasks, and wants to see what calls of this one say."""
        self._beside = seats
        self._shown = any(one.ticks for one in (*self.seats, *seats))

    def stop(self, end: End) -> None:
        """It is over for everybody."""
        if self.end is None:
            self.end = end
            for seat in self.seats:
                seat.outlet.finish(end)

    async def close(self) -> None:
        """Nobody watches any more."""
        self._following.cancel()
        if self._foreseeing is not None:
            self._foreseeing.cancel()
        with suppress(asyncio.CancelledError):
            await self._following

    # Between events

    @property
    def ticking(self) -> bool:
        """Whether something is at work that somebody wants to see."""
        state = self._state
        return self._shown and state is not None and state.status is TaskStatus.RUNNING and bool(state.open)

    def note(self, step: StepPath, fraction: float, text: str | None) -> None:
        """Called from any thread: only keeps the newest."""
        self._notes[step] = (fraction, text)
        self._noted = True

    def say(self, step: StepPath, attempt: int, text: str) -> None:
        """Called from any thread: kept until it is shown; if nobody wants to see it, it is not."""
        if self._shown:
            self._spoken.setdefault((step, attempt), Spoken()).add(text)

    def tick(self, beat: float, tick_s: float, now: Instant) -> None:
        """How far it is: soon if there is news, else now and then."""
        if beat < self._tick_at + (0 if self._noted else TICKS_SKIPPED_MAX * tick_s):
            return
        self._noted, self._tick_at = False, beat + tick_s
        frame = self.tick_frame(now)
        for seat in self.seats:
            if seat.ticks:
                seat.outlet.tick(self.task, frame)

    def tick_frame(self, now: Instant) -> Frame:
        """How far it is now."""
        assert self._state is not None
        if self._foreseen is None or now >= self._foreseen_at + FORESEEN_MS:
            self._foreseen, self._foreseen_at = self._desk.forecast.now(self._state), now
            if self._foreseeing is None or self._foreseeing.done():
                self._foreseeing = asyncio.create_task(self._foresee(self._state))
        return frames.tick(self._state, self._foreseen, self._notes, now)

    async def _foresee(self, state: TaskState) -> None:
        """What has risen is written down before it is told: the next tick tells it."""
        with suppress(EverstepError):
            self._foreseen = await self._desk.forecast.of(state)

    def show_output(self, *, whole: bool = False) -> None:
        """What calls have said since the last time, one frame each; `whole`: all of it."""
        assert self._state is not None
        for call, spoken in list(self._spoken.items()):
            while text := spoken.take():
                frame = frames.output(self._state, call, spoken.n, text)
                for seat in (*self.seats, *self._beside):
                    if seat.ticks:
                        seat.outlet.put(frame)
                if not whole:
                    break

    def _forget_ended(self) -> None:
        """What an attempt said after its end is of no interest."""
        assert self._state is not None
        running = {(path, one.number) for path, one in self._state.open.items()}
        for call in [call for call in self._spoken if call not in running]:
            del self._spoken[call]
        self._notes = {path: note for path, note in self._notes.items() if path in self._state.open}
