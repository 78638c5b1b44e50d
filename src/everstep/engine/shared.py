"""Pools of a whole fleet: beside its place in this engine's own queue a step needs a row in the store.

The row counts while this engine holds the task, so whoever dies has freed it once its tasks are taken over. A step that
finds no slot holds nothing, and asks again when a call here has ended or a moment has passed.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from everstep.domain.errors import StoreError
from everstep.domain.ids import StepPath, TaskId, WorkerId
from everstep.domain.record import record
from everstep.ports.news import Slot, Slots

Who: TypeAlias = tuple[TaskId, StepPath]


@record
class SlotWish:
    """A step that needs a slot before it may call."""

    step: StepPath
    pool: str


class SharedPools:
    """Used on the engine's loop only. `worker`: who asks; `wake`: told of a task that may ask again."""

    def __init__(
        self, slots: Slots, size: Callable[[str], int], worker: Callable[[], WorkerId], wake: Callable[[TaskId], object]
    ) -> None:
        self._slots = slots
        self._size = size
        self._worker = worker
        self._wake = wake
        self._granted: dict[Who, tuple[WorkerId, str]] = {}
        self._refused: set[Who] = set()
        self.waiting: dict[TaskId, None] = {}
        """Tasks that were refused, the first to be so first."""
        self._ended: dict[Who, tuple[WorkerId, str]] = {}
        self._freeing: asyncio.Task[None] | None = None
        self._freed = 0
        """How often slots were freed from here."""

    def has(self, who: Who) -> bool | None:
        """Whether it has a slot; None: nobody has asked for it yet."""
        if who in self._granted:
            return True
        if who in self._refused:
            self._refused.remove(who)
            self.waiting[who[0]] = None
            return False
        return None

    async def take(self, task: TaskId, wishes: Sequence[SlotWish]) -> None:
        """Ask the store; the next lap finds the answer."""
        worker, freed = self._worker(), self._freed
        asked = [Slot(pool=one.pool, task=task, step=one.step, size=self._size(one.pool)) for one in wishes]
        self.waiting.pop(task, None)
        for wish in wishes:
            self._ended.pop((task, wish.step), None)  # what is not freed yet is taken again as it is
        for wish, granted in zip(wishes, await self._slots.take(worker, asked), strict=True):
            if granted:
                self._granted[task, wish.step] = (worker, wish.pool)
            else:
                self._refused.add((task, wish.step))
                if freed != self._freed:  # while we asked: it does not stand among those who were told
                    self._wake(task)

    def release(self, who: Who) -> None:
        """Its call has ended, or was never made."""
        held = self._granted.pop(who, None)
        self._refused.discard(who)
        if held is not None:
            self._ended[who] = held
            if self._freeing is None:
                self._freeing = asyncio.create_task(self._free())

    def leave(self, task: TaskId) -> None:
        """The task is not carried here any more: it does not stand before those who wait."""
        self.waiting.pop(task, None)
        self._refused = {who for who in self._refused if who[0] != task}

    def look(self) -> None:
        """A moment has passed: others may have freed something. As many ask as there are slots."""
        for task in [*self.waiting][: max((self._size(pool) for _, pool in self._granted.values()), default=1)]:
            self._wake(task)
        if self._ended and self._freeing is None:
            self._freeing = asyncio.create_task(self._free())

    async def _free(self) -> None:
        try:
            while self._ended:
                ended, self._ended = self._ended, {}
                try:  # all sent before anything is waited for: a step that takes its slot again comes after
                    await asyncio.gather(*(self._slots.free(worker, slots) for worker, slots in _by_worker(ended)))
                except StoreError:  # the next look tries again; until then the slots count as taken
                    again = {who: held for who, held in ended.items() if who not in self._granted}
                    self._ended = {**again, **self._ended}
                    return
                self._freed += 1
                for task in [*self.waiting][: len(ended)]:
                    self._wake(task)
        finally:
            self._freeing = None


def _by_worker(ended: Mapping[Who, tuple[WorkerId, str]]) -> Iterator[tuple[WorkerId, list[Slot]]]:
    for worker in sorted({worker for worker, _ in ended.values()}):
        mine = [(who, pool) for who, (held_by, pool) in ended.items() if held_by == worker]
        yield worker, [Slot(pool=pool, task=task, step=step, size=0) for (task, step), pool in mine]
