"""All journals as one line: the keys of its rows are the order of the commits."""

from collections.abc import Callable, Sequence

from everstep.adapters.stores.sql.hold import Hold, Reader
from everstep.domain.ids import Seq, StepPath, TaskId
from everstep.ports.store import Journaled, Placed


class SqlTail:
    """The verbs of `Tail` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def last(self) -> Placed | None:
        """The newest event of all."""
        found = await self._hold().readers.read(lambda reader: reader.rows("tail_end"))
        return _placed(*found[0]) if found else None

    async def read(self, after: int, limit: int, owner: str | None = None) -> Sequence[Placed]:
        """What comes after a place."""
        values = {"after": after, "owner": owner, "limit": limit}

        def look(reader: Reader) -> list[Placed]:
            return [_placed(*row) for row in reader.rows("read_tail", values)]

        return await self._hold().readers.read(look)


def _placed(place: int, owner: str, task: str, seq: int, *told: str) -> Placed:
    kind, step, body = told
    event = Journaled(
        task=TaskId(task), seq=Seq(seq), type=kind, step=StepPath(step) if step else None, encoded=body.encode()
    )
    return Placed(place=place, owner=owner, event=event)
