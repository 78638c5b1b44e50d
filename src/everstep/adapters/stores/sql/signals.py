"""Signals in the same database and through the same writer."""

from typing import Any, cast

from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.hold import Hold
from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.record import record
from everstep.domain.signal import Listener, Signal
from everstep.ports.signals import Kept
from everstep.wire.signal import decode_signal, encode_signal


@record
class KeepUnit:
    """A signal comes."""

    signal: Signal
    since: Instant
    areas: tuple[str, ...] = ("signal",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Kept:
        desk.in_turn("signals", self.signal.owner)
        desk.change("forget_signals", (self.since,))
        one = self.signal
        for (heard,) in desk.rows("find_signal", (one.owner, one.id)):
            return Kept(new=False, heard=heard)
        body = encode_signal(one).decode()
        ((number,),) = desk.rows("insert_signal", (one.owner, one.id, one.event, one.key, one.at, body))
        meant = {"signal": number, "owner": one.owner, "event": one.event, "key": one.key}
        return Kept(new=True, listeners=[_listener(*row) for row in desk.rows("call_listeners", meant)])


@record
class ListenUnit:
    """A step begins to listen, or looks again."""

    listener: Listener
    since: Instant
    areas: tuple[str, ...] = ("listen",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Signal | None:
        one = self.listener
        desk.in_turn("signals", one.owner)
        desk.change("insert_listener", (*_row(one), one.owner, one.event, one.key, one.any_key))
        meant = {"task": one.task, "step": one.step, "attempt": one.attempt, "since": self.since}
        desk.change("give_signal", meant)
        return next((decode_signal(body) for (body,) in desk.rows("signal_for", _row(one))), None)


@record
class LeaveUnit:
    """A step listens no more, because it has heard its signal or for another reason."""

    listener: Listener
    heard: bool
    areas: tuple[str, ...] = ("listen",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        if self.heard:
            desk.change("count_heard", _row(self.listener))
        desk.change("delete_listener", _row(self.listener))


class SqlSignals:
    """The verbs of `Signals` in the database."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    async def keep(self, signal: Signal, since: Instant) -> Kept:
        """Keep it, for those who listen or for the first who will."""
        return cast("Kept", await self._write(KeepUnit(signal=signal, since=since)))

    async def listen(self, listener: Listener, since: Instant) -> Signal | None:
        """The signal that it is to hear."""
        return cast("Signal | None", await self._write(ListenUnit(listener=listener, since=since)))

    async def heard(self, listener: Listener) -> None:
        """Its signal is used."""
        await self._write(LeaveUnit(listener=listener, heard=True))

    async def leave(self, listener: Listener) -> None:
        """It listens no more."""
        await self._write(LeaveUnit(listener=listener, heard=False))

    async def _write(self, unit: KeepUnit | ListenUnit | LeaveUnit) -> object:
        (answer,) = await self._hold.writes.submit((unit,))
        return answer


def _row(listener: Listener) -> tuple[Any, ...]:
    return listener.task, listener.step, listener.attempt


def _listener(task: str, step: str, attempt: int, *meant: Any) -> Listener:
    owner, event, key, any_key = meant
    return Listener(
        task=TaskId(task),
        step=StepPath(step),
        attempt=attempt,
        owner=owner,
        event=event,
        key=key,
        any_key=bool(any_key),
    )
