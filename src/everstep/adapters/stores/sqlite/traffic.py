"""What all tasks share, on the same file and through the same writer."""

import json
from collections.abc import Sequence
from typing import cast

from everstep.adapters.stores.sqlite import apply, questions
from everstep.adapters.stores.sqlite.desk import HALT
from everstep.adapters.stores.sqlite.hold import Hold
from everstep.domain.ids import Instant, TaskId
from everstep.ports.traffic import Halt, Reservation


async def reserve(hold: Hold, wishes: Sequence[Reservation]) -> Sequence[Instant]:
    """One transaction for all of them."""
    (answer,) = await hold.writes.submit((apply.RateUnit(wishes=tuple(wishes)),))
    return cast("Sequence[Instant]", answer)


async def set_halt(hold: Hold, halt: Halt | None) -> None:
    """In its turn among the commits: who comes after it is refused."""
    body = None if halt is None else json.dumps([halt.mode, halt.by, halt.at, halt.note])
    await hold.writes.submit((apply.HaltUnit(body=body),))


async def get_halt(hold: Hold) -> Halt | None:
    """As it is kept."""
    body = await hold.readers.read(lambda reader: questions.meta(reader, HALT))
    if body is None:
        return None
    mode, by, at, note = json.loads(body)
    return Halt(mode=mode, by=by, at=Instant(at), note=note)


async def place_of(hold: Hold, task: TaskId) -> int | None:
    """Its place in the queue."""
    ((place,),) = await hold.readers.read(lambda reader: reader.rows("place_of", (task,)))
    return place or None
