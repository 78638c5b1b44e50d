"""Slots of pools that a fleet shares: rows that count while their worker holds the task, and no longer."""

from collections.abc import Callable, Sequence
from typing import cast

from everstep.adapters.stores.groupcommit import GroupCommit
from everstep.adapters.stores.sql.apply import COMMAND_BYTES, Unit
from everstep.adapters.stores.sql.desk import Desk
from everstep.domain.ids import WorkerId
from everstep.domain.record import record
from everstep.ports.news import Slot


@record
class TakeUnit:
    """Slots for a worker's steps."""

    worker: WorkerId
    slots: tuple[Slot, ...]
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> list[bool]:
        taken = {slot: self._take(desk, slot) for slot in sorted(self.slots, key=_pool)}
        return [taken[slot] for slot in self.slots]

    def _take(self, desk: Desk, slot: Slot) -> bool:
        place = (slot.pool, slot.task, slot.step)
        desk.in_turn("pool", slot.pool)
        desk.change("forget_slots", (slot.pool,))
        ((taken,),) = desk.rows("count_slots", place)
        if taken < slot.size:
            desk.change("take_slot", (*place, self.worker))
        return bool(taken < slot.size)


@record
class FreeUnit:
    """A call has ended."""

    worker: WorkerId
    slots: tuple[Slot, ...]
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        for slot in sorted(self.slots, key=_pool):
            desk.in_turn("pool", slot.pool)
            desk.change("free_slot", (slot.pool, slot.task, slot.step, self.worker))


def _pool(slot: Slot) -> str:
    """Pools are locked in one order, and before any of their rows: nobody waits in a circle."""
    return slot.pool


class PgSlots:
    """The verbs."""

    def __init__(self, writes: Callable[[], GroupCommit[Unit]]) -> None:
        self._writes = writes

    async def take(self, worker: WorkerId, slots: Sequence[Slot]) -> Sequence[bool]:
        """Counted under the lock of the pool."""
        (answer,) = await self._writes().submit((TakeUnit(worker=worker, slots=tuple(slots)),))
        return cast("Sequence[bool]", answer)

    async def free(self, worker: WorkerId, slots: Sequence[Slot]) -> None:
        """Freeing twice is harmless."""
        await self._writes().submit((FreeUnit(worker=worker, slots=tuple(slots)),))
