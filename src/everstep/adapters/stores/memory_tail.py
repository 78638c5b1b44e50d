"""All journals as one line, in a list."""

from collections.abc import Sequence

from everstep.domain.ids import TaskId
from everstep.ports.store import Journaled, Placed


class MemoryTail:
    """The verbs of `Tail` on a list."""

    def __init__(self) -> None:
        self._line: list[Placed] = []
        self._gone: set[TaskId] = set()

    def add(self, owner: str, events: Sequence[Journaled]) -> None:
        """They come after all others."""
        self._line += [
            Placed(place=place, owner=owner, event=event) for place, event in enumerate(events, len(self._line) + 1)
        ]

    def forget(self, task: TaskId) -> None:
        """They tell nothing any more; their places stay taken."""
        self._gone.add(task)

    async def last(self) -> Placed | None:
        """The newest event of all."""
        return next((one for one in reversed(self._line) if one.event.task not in self._gone), None)

    async def read(self, after: int, limit: int, owner: str | None = None) -> Sequence[Placed]:
        """What comes after a place."""
        told = (one for one in self._line[after:] if one.event.task not in self._gone)
        return [one for one in told if owner in (None, one.owner)][:limit]
