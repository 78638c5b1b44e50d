"""All journals as one line, in a list."""

from collections.abc import Sequence

from everstep.ports.store import Journaled, Placed


class MemoryTail:
    """The verbs of `Tail` on a list."""

    def __init__(self) -> None:
        self._line: list[Placed] = []

    def add(self, owner: str, events: Sequence[Journaled]) -> None:
        """They come after all others."""
        self._line += [
            Placed(place=place, owner=owner, event=event) for place, event in enumerate(events, len(self._line) + 1)
        ]

    async def last(self) -> Placed | None:
        """The newest event of all."""
        return self._line[-1] if self._line else None

    async def read(self, after: int, limit: int, owner: str | None = None) -> Sequence[Placed]:
        """What comes after a place."""
        return [one for one in self._line[after:] if owner in (None, one.owner)][:limit]
