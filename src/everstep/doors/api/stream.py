"""One watcher: frames in order, live, until the task ends, the watcher leaves or the engine stops.

A watcher reads the journal from where it is, until it has come as far as the channel that everybody shares, and joins
it in that same turn. So it gets exactly `after+1, after+2, …`, however the two race.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import ClassVar, Final, TypeAlias, cast

from everstep.domain.errors import Validation
from everstep.domain.ids import Instant, Seq
from everstep.domain.task import TaskState
from everstep.doors.api import frames
from everstep.doors.api.channel import ENDS, Seat, of_type
from everstep.doors.api.context import Asked, Backing, find_task, journal
from everstep.doors.api.frames import Frame, Place
from everstep.doors.api.hub import Hub
from everstep.doors.api.line import Line, cursor_of, place_in, trouble_with
from everstep.doors.api.outlet import ENDED, SLOW, End, Outlet
from everstep.doors.api.request import flag_in, number_in, wanted_types
from everstep.ports.store import Journaled, Placed
from everstep.wire.task import shown_steps, task_json

PAGE: Final = 500
WITH_BYE: Final = frozenset({1001, 1011, 1013, 4401, 4404})
"""Ends that a watcher is told of in a frame too, with the place that it has come to: there it goes on."""


class Watch(ABC):
    """One watcher: take its `frames`; when there are no more, `end` says why."""

    of: ClassVar = ("task",)
    """What it watches, for the figures."""

    def __init__(self, back: Backing, hub: Hub, seat: Seat, place: Place) -> None:
        self._back = back
        self._hub = hub
        self._seat = seat
        self.place = place
        """What it has been given, at least."""

    @property
    def outlet(self) -> Outlet:
        """What waits for it."""
        return self._seat.outlet

    @property
    def end(self) -> End | None:
        """Why it is over."""
        return self._seat.outlet.end

    def pong(self) -> None:
        """It asks whether we are still here."""
        self.outlet.put(frames.heartbeat(self.place, Instant(time.time_ns() // 1_000_000)))

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """All frames. When one is asked for, those before it have been delivered."""
        figures = self._back.desk.monitoring.figures
        figures.watchers[self.of] += 1
        try:
            async with aclosing(self._told()) as told:
                async for frame in told:
                    yield frame
                    if frame.place is not None:
                        self.place = frame.place
        finally:
            figures.watchers[self.of] -= 1
            if self.end is SLOW:
                figures.dropped[(SLOW.reason,)] += 1
        if self.end is not None and self.end.code in WITH_BYE:
            yield frames.bye(self.end.reason, self.place)

    @abstractmethod
    def _told(self) -> AsyncGenerator[Frame, None]:
        """What this stream tells."""

    async def _live(self) -> AsyncIterator[Frame]:
        while (frame := await self.outlet.next()) is not None:
            yield frame


class TaskWatch(Watch):
    """Of one task."""

    def __init__(self, back: Backing, hub: Hub, asked: Asked, state: TaskState) -> None:
        self._after = Seq(number_in(asked.query, "after", 0, most=2**53)) if "after" in asked.query else None
        seat = Seat(
            who=asked.who,
            outlet=Outlet(back.settings.events),
            place=state.seq if self._after is None else self._after,
            types=wanted_types(asked.query),
            ticks=flag_in(asked.query, "ticks", default=True),
            ends_from=state.seq if until_end(asked.query) else None,
        )
        super().__init__(back, hub, seat, Seq(seat.place))
        self._state = state

    async def _told(self) -> AsyncGenerator[Frame, None]:
        seat, back, state = self._seat, self._back, self._state
        heartbeat_s = back.settings.events.heartbeat_ms / 1000
        ends = {"first_seq": 1, "head_seq": state.seq}
        yield frames.hello(back.version, back.incarnation, heartbeat_s, task=state.id, **ends)
        ahead = seat.place > state.seq
        if ahead:
            yield frames.resync_required("ahead", **ends)
        if ahead or self._after is None:
            history = await journal(back, state.id, frozenset(shown_steps(state)))
            yield frames.snapshot(state.seq, task_json(state, history, await back.desk.forecast.of(state)), reset=ahead)
            seat.place = self.place = state.seq
        self._finish_if_over()
        channel = self._hub.channel(state.id, seat.who)
        try:
            await channel.ready.wait()
            while not channel.join(seat):
                async for frame in self._replay():
                    yield frame
                self._finish_if_over()
            if channel.end is None:
                yield frames.live(Seq(seat.place))
            async for frame in self._live():
                yield frame
        finally:
            channel.leave(seat)
            await self._hub.leave(channel)

    def _finish_if_over(self) -> None:
        """A task that had ended before anybody asked does not end again, and words may have followed its end."""
        if self._seat.ends_from is not None and self._state.terminal and self._seat.place >= self._state.seq:
            self._seat.outlet.finish(ENDED)

    async def _replay(self) -> AsyncIterator[Frame]:
        """The journal from where the watcher is, as far as it goes."""
        seat, state = self._seat, self._state
        reading = self._back.desk.events(state.id, Seq(seat.place), follow=False)
        async with aclosing(cast("AsyncGenerator[Journaled, None]", reading)) as events:
            async for event in events:
                seat.place = event.seq
                if of_type(event, seat.types):
                    yield frames.event(event)
                if seat.ends_from is not None and event.type in ENDS and event.seq >= seat.ends_from:
                    seat.outlet.finish(ENDED)
                    return


class LineWatch(Watch):
    """Of all tasks of an owner."""

    of: ClassVar = ("all",)

    def __init__(self, back: Backing, hub: Hub, asked: Asked, last: Placed | None) -> None:
        after = asked.query.get("after")
        seat = Seat(
            who=asked.who,
            outlet=Outlet(back.settings.events),
            place=(0 if last is None else last.place) if after is None else place_in(after),
            types=wanted_types(asked.query),
            ticks=flag_in(asked.query, "ticks", default=False),
        )
        super().__init__(back, hub, seat, cursor_of(last) if after is None else after)
        self._last = last
        self._trouble: str | None = None

    async def check(self, after: str | None) -> None:
        """Whether the journal still has the place it wants to go on from."""
        if after is not None:
            self._trouble = await trouble_with(after, self._back.desk, self._last)

    async def _told(self) -> AsyncGenerator[Frame, None]:
        seat, back, head = self._seat, self._back, cursor_of(self._last)
        yield frames.hello(back.version, back.incarnation, back.settings.events.heartbeat_ms / 1000, cursor=head)
        if self._trouble is not None:
            yield frames.resync_required(self._trouble, cursor=head)
            seat.place, self.place = (0 if self._last is None else self._last.place), head
        line = self._hub.line()
        owner = seat.who.owner
        try:
            await line.ready.wait()
            while not line.join(owner, seat):
                async for frame in self._replay(line):
                    yield frame
            if line.end is None:  # who is told good-bye may be far from where the line is
                yield frames.live(line.cursor)
            async for frame in self._live():
                yield frame
        finally:
            line.leave(owner, seat)
            await self._hub.leave(line)

    async def _replay(self, line: Line) -> AsyncIterator[Frame]:
        """A page of what the owner's tasks have done since; a page that is not full goes as far as the line."""
        seat, told = self._seat, line.place
        page = await self._back.desk.watching.read(seat.place, PAGE, seat.who.owner)
        for placed in page:
            seat.place = placed.place
            if of_type(placed.event, seat.types):
                yield frames.event_at(cursor_of(placed), placed.event)
        if len(page) < PAGE:
            seat.place = max(seat.place, told)


def until_end(query: Mapping[str, str]) -> bool:
    """Whether the stream ends with the task."""
    until = query.get("until")
    if until not in (None, "end"):
        raise Validation("'until' can only be 'end'")
    return until == "end"


async def watch_task(back: Backing, hub: Hub, asked: Asked) -> Watch:
    """A watcher of the task that the path names."""
    return TaskWatch(back, hub, asked, await find_task(back, asked))


async def watch_all(back: Backing, hub: Hub, asked: Asked) -> Watch:
    """A watcher of all tasks of the owner."""
    watch = LineWatch(back, hub, asked, await back.desk.watching.last())
    await watch.check(asked.query.get("after"))
    return watch


Begin: TypeAlias = Callable[[Backing, Hub, Asked], Awaitable[Watch]]
WATCHES: Final[Mapping[str, Begin]] = {"events.page": watch_task, "events.all": watch_all}
"""Which stream a route has, by the name of its handler."""
