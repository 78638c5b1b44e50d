"""Slots of a fleet: who leaves stands in nobody's way, and a slot that is taken again is not freed behind its back."""

import asyncio
from collections.abc import Sequence

from everstep.domain.ids import StepPath, TaskId, WorkerId
from everstep.engine.shared import SharedPools, SlotWish
from everstep.ports.news import Slot

ME = WorkerId("w_me")
STEP = StepPath("a")


class Rows:
    """What a store keeps of one pool; whoever frees waits for `open`."""

    def __init__(self) -> None:
        self.rows: set[TaskId] = set()
        self.open = asyncio.Event()

    async def take(self, worker: WorkerId, slots: Sequence[Slot]) -> Sequence[bool]:
        granted = [len(self.rows - {slot.task}) < slot.size for slot in slots]
        self.rows |= {slot.task for slot, had in zip(slots, granted, strict=True) if had}
        return granted

    async def free(self, worker: WorkerId, slots: Sequence[Slot]) -> None:
        self.rows -= {slot.task for slot in slots}
        await self.open.wait()


class Desk:
    """One engine's pools of one slot, and whom they woke."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.woken: list[TaskId] = []
        self.pools = SharedPools(self.rows, lambda _: 1, lambda: ME, self.woken.append)

    async def ask(self, name: str) -> bool | None:
        task = TaskId(name)
        await self.pools.take(task, [SlotWish(step=STEP, pool="p")])
        return self.pools.has((task, STEP))


async def test_a_task_that_has_left_stands_before_nobody() -> None:
    desk = Desk()
    assert [await desk.ask(name) for name in ("t_1", "t_2", "t_3")] == [True, False, False]
    desk.pools.leave(TaskId("t_2"))
    desk.pools.look()
    assert desk.woken == ["t_3"]


async def test_a_slot_that_is_taken_again_before_it_was_freed_is_kept() -> None:
    desk = Desk()
    assert await desk.ask("t_1")
    desk.pools.release((TaskId("t_1"), STEP))
    assert await desk.ask("t_1")
    await asyncio.sleep(0)
    assert desk.rows.rows == {"t_1"}
    assert await desk.ask("t_2") is False
    desk.rows.open.set()


async def test_who_is_refused_while_a_slot_is_freed_asks_again() -> None:
    """It stands among those who wait only once it knows: nobody else would tell it."""
    desk, answered, asked = Desk(), asyncio.Event(), asyncio.Event()
    desk.rows.open.set()
    assert await desk.ask("t_1")
    real = desk.rows.take

    async def slowly(worker: WorkerId, slots: Sequence[Slot]) -> Sequence[bool]:
        granted = await real(worker, slots)
        asked.set()
        await answered.wait()
        return granted

    desk.rows.take = slowly  # type: ignore[method-assign]
    asking = asyncio.ensure_future(desk.ask("t_2"))
    await asked.wait()
    desk.pools.release((TaskId("t_1"), STEP))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not desk.rows.rows
    answered.set()
    assert await asking is False
    assert desk.woken == ["t_2"]
