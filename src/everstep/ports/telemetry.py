"""Telemetry: who is told everything that becomes durable, to pass it on to systems that watch many programs."""

from collections.abc import Sequence
from typing import Protocol

from everstep.ports.store import Journaled


class Telemetry(Protocol):
    """The verbs. Called on the engine's loop, after the commit; nothing waits for what comes of it."""

    def told(self, events: Sequence[Journaled]) -> None:
        """Events of any task; those of one task in order."""

    def missed(self) -> None:
        """Some events went by untold: there were too many at once."""

    async def close(self) -> None:
        """Pass on what is left; takes a few seconds at most."""
