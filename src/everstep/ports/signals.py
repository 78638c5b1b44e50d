"""Signals: who waits for what, and what has come. Kept by the store, so that neither is lost with a process.

A listener and a signal that are meant for each other meet in whichever comes second: both verbs look and write in one
transaction. A signal goes to everybody who listens when it comes; if nobody does, to the first who does later.
"""

from collections.abc import Sequence
from typing import Protocol

from everstep.domain.ids import Instant
from everstep.domain.record import record
from everstep.domain.signal import Listener, Signal


@record
class Kept:
    """A signal that is durable: whether it is new, who is to hear it, and how many have."""

    new: bool
    listeners: Sequence[Listener] = ()
    heard: int = 0


class Signals(Protocol):
    """The verbs. Every answer is durable."""

    async def keep(self, signal: Signal, since: Instant) -> Kept:
        """Keep it, for those who listen now or else for the first who will; a known id keeps nothing.

        What came before `since` and was heard by nobody is forgotten.
        """

    async def listen(self, listener: Listener, since: Instant) -> Signal | None:
        """The signal that this attempt is to hear, from `since` on; None: it listens from now on."""

    async def heard(self, listener: Listener) -> None:
        """Its step has the signal on record: it listens no more, and the signal is used."""

    async def leave(self, listener: Listener) -> None:
        """It listens no more. A signal that was meant for it alone is there for somebody else."""
