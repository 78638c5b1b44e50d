"""Handles in a dictionary."""

from dataclasses import replace

from everstep.domain.values import JsonObject
from everstep.ports.handles import Handle


class MemoryHandles:
    """The verbs of `Handles`."""

    def __init__(self) -> None:
        self._kept: dict[str, Handle] = {}

    async def keep(self, wanted: Handle) -> Handle:
        """The handle of this generation."""
        same = (one for one in self._kept.values() if (one.task, one.generation) == (wanted.task, wanted.generation))
        return next(same, None) or self._kept.setdefault(wanted.id, wanted)

    async def find(self, id: str) -> Handle | None:
        """By its name."""
        return self._kept.get(id)

    async def note(self, id: str, notes: JsonObject) -> None:
        """Merge; null deletes."""
        kept = self._kept.get(id)
        if kept is not None:
            merged = {**kept.notes, **notes}
            left: JsonObject = {name: value for name, value in merged.items() if value is not None}
            self._kept[id] = replace(kept, notes=left)
