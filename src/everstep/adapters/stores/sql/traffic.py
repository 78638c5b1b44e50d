"""What all tasks share, in the same database and through the same writer."""

import json
from collections.abc import Sequence
from typing import Final, cast

from everstep.adapters.stores.sql import questions
from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import HALT, Desk
from everstep.adapters.stores.sql.history import SqlHistory
from everstep.adapters.stores.sql.housekeeping import WithKeeping
from everstep.adapters.stores.sql.signals import SqlSignals
from everstep.adapters.stores.sql.tail import SqlTail
from everstep.domain.ids import Instant, TaskId
from everstep.domain.rate import MICROS, Spent, count, reserve
from everstep.domain.record import record
from everstep.ports.traffic import Halt, Reservation, Waiting


@record
class RateUnit:
    """Places in rates and quotas."""

    wishes: tuple[Reservation, ...]
    areas: tuple[str, ...] = ("rate",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> list[Instant | None]:
        return [_place(desk, wish) for wish in self.wishes]


def _place(desk: Desk, wish: Reservation) -> Instant | None:
    desk.in_turn("rate", wish.name)
    if wish.quota is not None:
        before = next((Spent(day=day, used=used) for day, used in desk.rows("find_quota", (wish.name,))), None)
        spent = count(wish.quota, before, wish.at)
        if spent is None:
            return None
        desk.change("count_quota", (wish.name, spent.day, spent.used))
    if wish.rate is None:
        return wish.at
    arrival = next((row[0] for row in desk.rows("find_rate", (wish.name,))), None)
    at, arrival = reserve(wish.rate, arrival, wish.at)
    desk.change("move_rate", (wish.name, arrival))
    return at


@record
class PushUnit:
    """A provider wants to be left alone."""

    name: str
    until: Instant
    areas: tuple[str, ...] = ("rate",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        desk.change("push_rate", (self.name, self.until * MICROS))


@record
class HaltUnit:
    """Everything stands still, or goes on."""

    body: str | None
    areas: tuple[str, ...] = ("halt",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        if self.body is None:
            desk.change("forget_meta", (HALT,))
        else:
            desk.change("put_meta", (HALT, self.body))
        desk.look_again()


class SqlTraffic(WithKeeping):
    """Rates, signals, the halt, the queue, the history and the line of all events of a store on a database."""

    def __init__(self) -> None:
        self.history: Final = SqlHistory(lambda: self._hold)

    @property
    def tail(self) -> SqlTail:
        """What happened over all tasks."""
        return SqlTail(lambda: self._hold)

    @property
    def signals(self) -> SqlSignals:
        """Who waits for what from outside, and what has come."""
        return SqlSignals(self._hold)

    async def reserve(self, wishes: Sequence[Reservation]) -> Sequence[Instant | None]:
        """When each may call; its place is taken. One transaction for all of them."""
        (answer,) = await self._hold.writes.submit((RateUnit(wishes=tuple(wishes)),))
        return cast("Sequence[Instant | None]", answer)

    async def push(self, name: str, until: Instant) -> None:
        """No place of its rate comes before."""
        await self._hold.writes.submit((PushUnit(name=name, until=until),))

    async def set_halt(self, halt: Halt | None) -> None:
        """In its turn among the commits: who comes after it is refused."""
        body = None if halt is None else json.dumps([halt.mode, halt.by, halt.at, halt.note])
        await self._hold.writes.submit((HaltUnit(body=body),))

    async def get_halt(self) -> Halt | None:
        """Whether everything is halted."""
        body = await self._hold.readers.read(lambda reader: questions.meta(reader, HALT))
        if body is None:
            return None
        mode, by, at, note = json.loads(body)
        return Halt(mode=mode, by=by, at=Instant(at), note=note)

    async def live_tasks(self, owner: str) -> int:
        """Counted in the index."""
        ((live,),) = await self._hold.readers.read(lambda reader: reader.rows("count_live", (owner,)))
        assert isinstance(live, int)
        return live

    async def waiting(self) -> Waiting:
        """From the index of what can be claimed."""
        ((tasks, since),) = await self._hold.readers.read(lambda reader: reader.rows("waiting_tasks"))
        return Waiting(tasks=tasks, since=since)

    async def place_of(self, task: TaskId) -> int | None:
        """Its place in the queue."""
        ((place,),) = await self._hold.readers.read(lambda reader: reader.rows("place_of", (task,)))
        return place or None
