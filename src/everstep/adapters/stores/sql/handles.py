"""Handles in the database."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable

from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.hold import Hold, Reader
from everstep.domain.ids import Instant, Millis, TaskId
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.ports.handles import Handle


@record
class KeepUnit:
    """A handle, unless its generation has one."""

    wanted: Handle
    areas: tuple[str, ...] = ("handle",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Handle:
        wanted = self.wanted
        names = (wanted.id, wanted.owner, wanted.task, wanted.generation, wanted.ttl_ms, wanted.created_at)
        desk.change("put_handle", (*names, json.dumps(wanted.notes)))
        (row,) = desk.rows("handle_of_task", (wanted.task, wanted.generation))
        return _handle(*row)


@record
class NoteUnit:
    """What a client said."""

    id: str
    notes: JsonObject
    areas: tuple[str, ...] = ("handle",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        desk.change("note_handle", (json.dumps(self.notes), self.id))


class SqlHandles:
    """The verbs of `Handles` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def keep(self, wanted: Handle) -> Handle:
        """The handle of this generation."""
        (answer,) = await self._hold().writes.submit((KeepUnit(wanted=wanted),))
        assert isinstance(answer, Handle)
        return answer

    async def find(self, id: str) -> Handle | None:
        """By its name."""

        def look(reader: Reader) -> Handle | None:
            return next((_handle(*row) for row in reader.rows("find_handle", (id,))), None)

        return await self._hold().readers.read(look)

    async def note(self, id: str, notes: JsonObject) -> None:
        """Merge; null deletes."""
        await self._hold().writes.submit((NoteUnit(id=id, notes=notes),))


def _handle(*row: str | int) -> Handle:
    name, owner, task, generation, ttl_ms, created_at, notes = row
    return Handle(
        id=str(name),
        owner=str(owner),
        task=TaskId(str(task)),
        generation=int(generation),
        ttl_ms=Millis(int(ttl_ms)),
        created_at=Instant(int(created_at)),
        notes=json.loads(str(notes)),
    )


class WithHandles(ABC):
    """A store on a database, once it is open; and what clients outside call its tasks."""

    @property
    @abstractmethod
    def _hold(self) -> Hold:
        """What is open; raises EngineClosed."""

    @property
    def handles(self) -> SqlHandles:
        """What clients outside call their tasks."""
        return SqlHandles(lambda: self._hold)
