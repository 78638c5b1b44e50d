"""Hub: everything that is being watched through one door, and the one beat that keeps it ticking.

However many watch, there is one reader per watched task, one for all tasks together, and one timer for all of them.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.events import Who
from everstep.domain.ids import Instant, Seq, StepPath, TaskId
from everstep.domain.pressure import Load
from everstep.domain.states import TaskStatus
from everstep.doors.api import frames
from everstep.doors.api.channel import Channel, Seat
from everstep.doors.api.context import Backing
from everstep.doors.api.frames import Place
from everstep.doors.api.line import Line
from everstep.doors.api.outlet import SHUTDOWN
from everstep.ports.store import TaskFilter

OUTPUT_S: Final = 0.1
"""Text that calls produce is joined for so long."""
LINE_TICK_S: Final = 1.0
"""Ticks in the stream of all tasks."""
IDLE_S: Final = 0.5
SLOWER: Final = 4
"""While little is left of the machine, ticks come so many times later."""
RUNNING: Final = frozenset({TaskStatus.RUNNING})


def tick_every(load: Load, hz: float) -> float:
    """How long it is between two ticks of a task."""
    return (1 if load is Load.EASE else SLOWER) / hz


class Hub:
    """Who watches what."""

    def __init__(self, back: Backing) -> None:
        self._back = back
        self._channels: dict[TaskId, Channel] = {}
        self._line: Line | None = None
        self._watched: dict[TaskId, Channel] = {}
        """Running tasks that ticks of the stream of all tasks need."""
        self._beating: asyncio.Task[None] | None = None
        self._deaf: Callable[[], None] | None = None
        self.closed = False

    # Coming and going

    def channel(self, task: TaskId, who: Who) -> Channel:
        """The channel of a task; wait until it is `ready`, and give it back with `leave`."""
        channel = self._channels.get(task)
        if channel is None or channel.end is not None:
            channel = self._channels[task] = Channel(self._back.desk, task, who)
        channel.users += 1
        self._wake()
        if self.closed:
            channel.stop(SHUTDOWN)
        return channel

    def line(self) -> Line:
        """The line of all tasks; wait until it is `ready`, and give it back with `leave`."""
        if self._line is None or self._line.end is not None:
            self._line = Line(self._back.desk)
        line = self._line
        line.users += 1
        self._wake()
        if self.closed:
            line.stop(SHUTDOWN)
        return line

    async def leave(self, used: Channel | Line) -> None:
        """What nobody uses any more is let go."""
        used.users -= 1
        if used.users:
            return
        if isinstance(used, Channel):
            if self._channels.get(used.task) is used:
                del self._channels[used.task]
        elif self._line is used:
            self._line = None
            while self._watched:
                await self.leave(self._watched.popitem()[1])
        await used.close()
        await self._rest()

    def close(self) -> None:
        """Good-bye to everybody, and to whoever comes later."""
        self.closed = True
        for used in (*self._channels.values(), *([self._line] if self._line else ())):
            used.stop(SHUTDOWN)

    def _wake(self) -> None:
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())
            self._deaf = self._back.desk.watching.listen(self)

    async def _rest(self) -> None:
        if self._channels or self._line or self._beating is None:
            return
        beating, self._beating = self._beating, None
        if self._deaf is not None:
            self._deaf()
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating

    # What running calls say, from any thread

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """How far one has come."""
        channel = self._channels.get(task)
        if channel is not None:
            channel.note(step, fraction, text)

    def output(self, task: TaskId, step: StepPath, attempt: int, text: str) -> None:
        """Text of one."""
        channel = self._channels.get(task)
        if channel is not None:
            channel.say(step, attempt, text)

    # The beat

    async def _beat(self) -> None:
        events = self._back.settings.events
        tick_s, heartbeat_s = 1 / events.tick_hz, events.heartbeat_ms / 1000
        line_at = sweep_at = 0.0
        while True:
            busy = [channel for channel in self._channels.values() if channel.ticking]
            await asyncio.sleep(min(OUTPUT_S if busy else IDLE_S, tick_s, heartbeat_s / 4))
            tick_s = tick_every(self._back.desk.monitoring.load, events.tick_hz)
            now = time.monotonic()
            for channel in busy:
                channel.show_output()
                channel.tick(now, tick_s - OUTPUT_S / 2, self._now())
            if now >= sweep_at:
                sweep_at = now + min(1.0, heartbeat_s / 4)
                self._break_silence(now - heartbeat_s)
            if self._line is not None and now >= line_at:
                line_at = now + LINE_TICK_S - OUTPUT_S / 2
                with suppress(EverstepError):  # whoever cannot read the store says so elsewhere
                    await self._tick_line(self._line)

    def _break_silence(self, before: float) -> None:
        """A heartbeat for everybody who has heard nothing since."""
        for place, seats in self._seats():
            silent = [seat for seat in seats if seat.outlet.spoke_at <= before]
            if silent:
                frame = frames.heartbeat(place, self._now())
                for seat in silent:
                    seat.outlet.put(frame)

    def _seats(self) -> Iterator[tuple[Place, list[Seat]]]:
        for channel in self._channels.values():
            yield Seq(channel.last), channel.seats
        if self._line is not None:
            for seats in self._line.seats.values():
                yield self._line.cursor, seats

    async def _tick_line(self, line: Line) -> None:
        """One tick of every running task, for those who want them in the stream of all tasks."""
        wanting = {owner: [seat for seat in seats if seat.ticks] for owner, seats in line.seats.items()}
        wanting = {owner: seats for owner, seats in wanting.items() if seats}
        running: set[TaskId] = set()
        for owner, seats in wanting.items():
            page = await self._back.desk.list(TaskFilter(owner=owner, statuses=RUNNING, limit=100))
            for item in page.items:
                running.add(item.id)
                channel = self._watched.get(item.id)
                if channel is None and self._line is line:
                    channel = self._watched[item.id] = self.channel(item.id, seats[0].who)
                    await channel.ready.wait()
                if channel is not None and channel.end is None:
                    channel.tell_too(seats)
                    frame = channel.tick_frame(self._now())
                    for seat in seats:
                        seat.outlet.tick(item.id, frame)
        for task in self._watched.keys() - running:
            await self.leave(self._watched.pop(task))

    def _now(self) -> Instant:
        return Instant(time.time_ns() // 1_000_000)
