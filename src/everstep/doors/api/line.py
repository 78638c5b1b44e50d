"""Line: all tasks of everybody as one stream, read once however many watch; each owner hears only of its own.

The feed says that there is something, the journal says what: places in the order of the commits. A cursor is such a
place with a mark of the event that stands there, so that one of another store, or of rows that are gone, is noticed.
"""

import asyncio
import re
import zlib
from contextlib import suppress
from typing import Final

from everstep.domain.errors import EngineClosed, EverstepError, Validation
from everstep.doors.api import frames
from everstep.doors.api.channel import Seat
from everstep.doors.api.outlet import BROKEN, SHUTDOWN, End
from everstep.facade.desk import Desk
from everstep.facade.watching import Notice
from everstep.ports.store import Placed

START: Final = "0-00000000"
"""The cursor of a store in which nothing has happened yet."""
_CURSOR: Final = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{8})")


def cursor_of(placed: Placed | None) -> str:
    """Where a stream of all tasks is after this event."""
    if placed is None:
        return START
    mark = zlib.crc32(f"{placed.place} {placed.event.task} {placed.event.seq}".encode())
    return f"{placed.place:x}-{mark:08x}"


def place_in(cursor: str) -> int:
    """The place that a cursor names; raises Validation for what is none."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise Validation("'after' is no cursor", what_to_do="begin without one, then use what the stream gives")
    return int(found[1], 16)


async def trouble_with(cursor: str, desk: Desk, last: Placed | None) -> str | None:
    """Why a stream cannot go on from a cursor: `expired` or `ahead`; None: it can."""
    place = place_in(cursor)
    if place > (0 if last is None else last.place):
        return "ahead"
    if cursor == START:
        return None
    stands = [one for one in await desk.watching.read(place - 1, 1) if one.place == place]
    return None if stands and cursor_of(stands[0]) == cursor else "expired"


class Line:
    """The stream of all tasks of one engine."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.users = 0
        self.last: Placed | None = None
        self.seats: dict[str, list[Seat]] = {}
        self.end: End | None = None
        self.ready = asyncio.Event()
        self._quiet = desk.watching.notices(self._noticed)
        self._following = asyncio.create_task(self._follow())

    @property
    def place(self) -> int:
        """Everything up to here was told."""
        return 0 if self.last is None else self.last.place

    @property
    def cursor(self) -> str:
        """The same, for watchers."""
        return cursor_of(self.last)

    async def _follow(self) -> None:
        end = SHUTDOWN
        try:
            self.last = await self._desk.watching.last()
            self.ready.set()
            async for page in self._desk.watching.follow(self.place):
                for placed in page:
                    self._happened(placed)
        except EngineClosed:
            pass
        except EverstepError:
            end = BROKEN
        finally:
            self.ready.set()
        self.stop(end)

    def _happened(self, placed: Placed) -> None:
        self.last = placed
        seats = self.seats.get(placed.owner)
        if seats:
            frame = frames.event_at(cursor_of(placed), placed.event)
            for seat in seats:
                seat.event(placed.event, frame, placed.place)

    def _noticed(self, notice: Notice) -> None:
        frame = frames.notice(notice)
        for owner, seats in self.seats.items():
            if notice.owner in (None, owner):
                for seat in seats:
                    seat.outlet.put(frame)

    def join(self, owner: str, seat: Seat) -> bool:
        """Take part from here on; False: read up to `place` first."""
        if self.end is not None:
            seat.outlet.finish(self.end)
            return True
        if seat.place < self.place:
            return False
        self.seats.setdefault(owner, []).append(seat)
        return True

    def leave(self, owner: str, seat: Seat) -> None:
        """Take part no more; leaving twice is harmless."""
        seats = self.seats.get(owner, [])
        if seat in seats:
            seats.remove(seat)
        if not seats:
            self.seats.pop(owner, None)

    def stop(self, end: End) -> None:
        """It is over for everybody."""
        if self.end is None:
            self.end = end
            for seat in (seat for seats in self.seats.values() for seat in seats):
                seat.outlet.finish(end)

    async def close(self) -> None:
        """Nobody watches any more."""
        self._quiet()
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
