"""Signals in lists."""

from dataclasses import dataclass

from everstep.domain.ids import Instant
from everstep.domain.signal import Listener, Signal
from everstep.ports.signals import Kept


@dataclass(slots=True)
class _Sent:
    signal: Signal
    heard: int = 0


class MemorySignals:
    """The verbs of `Signals` on what this process knows."""

    def __init__(self) -> None:
        self._sent: list[_Sent] = []
        self._listeners: dict[Listener, _Sent | None] = {}

    async def keep(self, signal: Signal, since: Instant) -> Kept:
        """Keep it, for those who listen or for the first who will."""
        self._sent = [one for one in self._sent if one.signal.at >= since or one in self._listeners.values()]
        for known in self._sent:
            if (known.signal.owner, known.signal.id) == (signal.owner, signal.id):
                return Kept(new=False, heard=known.heard)
        sent = _Sent(signal)
        self._sent.append(sent)
        meant = [one for one, has in self._listeners.items() if has is None and one.hears(signal)]
        for listener in meant:
            self._listeners[listener] = sent
        return Kept(new=True, listeners=meant)

    async def listen(self, listener: Listener, since: Instant) -> Signal | None:
        """The signal that it is to hear."""
        has = self._listeners.get(listener)
        if has is None:
            taken = self._listeners.values()
            free = (one for one in self._sent if not one.heard and one not in taken and one.signal.at >= since)
            has = next((one for one in free if listener.hears(one.signal)), None)
            self._listeners[listener] = has
        return None if has is None else has.signal

    async def heard(self, listener: Listener) -> None:
        """Its signal is used."""
        has = self._listeners.pop(listener, None)
        if has is not None:
            has.heard += 1

    async def leave(self, listener: Listener) -> None:
        """It listens no more."""
        self._listeners.pop(listener, None)
