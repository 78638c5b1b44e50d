"""Pools: so many calls of a kind at the same time, in this worker; those of a whole fleet are in `shared`.

A slot is taken before the intent is written and given back when the call has really ended: a thread that nobody waits
for any more keeps its slot. Who finds none waits in the queue's order, holds nothing meanwhile, and is woken when a
slot is handed over to it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

from everstep.domain.ids import StepPath, TaskId
from everstep.domain.queue import rank
from everstep.domain.task import TaskState

SIZES: Final[Mapping[str, int]] = {"http": 64, "llm": 8, "search": 4, "browser": 3, "mail": 2}
"""Of pools that every engine has, unless the settings say otherwise."""
USUAL: Final = 4

Who: TypeAlias = tuple[TaskId, StepPath]


class Pools:
    """Who has a slot, and who waits for one. Used on the engine's loop only."""

    def __init__(self, sizes: Mapping[str, int], shared: frozenset[str] = frozenset()) -> None:
        self._sizes = {**SIZES, **sizes}
        self.shared: Final = shared
        """Those whose slots all engines of a fleet share."""
        self.released: Callable[[Who], object] = lambda _: None
        """Told when a step has no slot any more."""
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, dict[Who, tuple[int, int]]] = {}
        self._calling: dict[Who, str] = {}
        self._outliving: set[Who] = set()
        self._handed_over: set[Who] = set()
        """Slots that their tasks have not seen yet."""
        self._order = count()
        self.kept: dict[TaskId, dict[Who, str]] = {}
        """By task, steps that wait or for whose call a slot is kept; empty as long as nobody uses a pool."""
        self._slots: set[Who] = set()
        """Those of them that have a slot."""
        self._asked: dict[TaskId, set[Who]] = {}
        self.wake: Callable[[TaskId], object] = lambda _: None
        """Told when a task was given what it waited for."""

    @property
    def names(self) -> frozenset[str]:
        """Pools that are known without anybody using them."""
        return frozenset(self._sizes)

    def size(self, pool: str) -> int:
        """How many calls at a time."""
        return self._sizes.get(pool, USUAL)

    def figures(self) -> dict[str, tuple[int, int, int]]:
        """Of each pool in use: its size, slots taken, steps waiting."""
        used = sorted({*self._taken, *self._waiting})
        return {name: (self.size(name), self._taken[name], len(self._waiting.get(name, ()))) for name in used}

    def take(self, pool: str, state: TaskState, path: StepPath) -> bool:
        """A slot for this step, or a place among those who wait. Nobody overtakes who waits already."""
        who = (state.id, path)
        self._asked.setdefault(state.id, set()).add(who)
        self._handed_over.discard(who)
        if who in self._slots:
            return True
        waiting = self._waiting.setdefault(pool, {})
        if who not in waiting:
            self.kept.setdefault(state.id, {})[who] = pool
            if not waiting and self._taken[pool] < self.size(pool):
                self._taken[pool] += 1
                self._slots.add(who)
                return True
            waiting[who] = (rank(state.priority, state.created_at), next(self._order))
        return False

    def begun(self, who: Who, call: "asyncio.Task[Any]") -> None:
        """The call for which a slot was kept is under way."""
        if who in self._slots:
            self._calling[who] = self._forget(who)
            call.add_done_callback(partial(self._ended, who))

    def outlives(self, who: Who) -> Callable[[], None]:
        """Its work goes on although nobody waits for it: the slot is kept until what is returned is called."""
        pool = self._calling.get(who)
        if pool is None:
            return lambda: None
        self._outliving.add(who)
        return partial(self._over, who, pool)

    def tidy(self, task: TaskId) -> None:
        """After a commit: what was kept for this task and is not used is given back; who did not ask again leaves."""
        asked = self._asked.pop(task, set())
        for who in list(self.kept.get(task, ())):
            if who in self._handed_over:  # while the commit was under way: the task will look again
                self._handed_over.remove(who)
            elif who in self._slots or who not in asked:
                self._give_back(who)

    def leave(self, task: TaskId) -> None:
        """The task is not carried here any more; its calls end by themselves."""
        self._asked.pop(task, None)
        for who in list(self.kept.get(task, ())):
            self._give_back(who)

    def _give_back(self, who: Who) -> None:
        slot = who in self._slots
        pool = self._forget(who)
        if slot:
            self._over(who, pool)

    def _forget(self, who: Who) -> str:
        mine = self.kept[who[0]]
        pool = mine.pop(who)
        if not mine:
            del self.kept[who[0]]
        self._slots.discard(who)
        self._handed_over.discard(who)
        self._waiting.get(pool, {}).pop(who, None)
        return pool

    def _ended(self, who: Who, _call: "asyncio.Task[Any]") -> None:
        pool = self._calling.pop(who)
        if who in self._outliving:
            self._outliving.remove(who)
        else:
            self._over(who, pool)

    def _over(self, who: Who, pool: str) -> None:
        self.released(who)
        self._free(pool)

    def _free(self, pool: str) -> None:
        """Hand a slot over to whoever is next, by priority and age."""
        queue = self._waiting.get(pool)
        if not queue:
            self._taken[pool] -= 1
            return
        following = min(queue, key=queue.__getitem__)
        del queue[following]
        self._slots.add(following)
        self._handed_over.add(following)
        self.wake(following[0])


class OpenPools(Pools):
    """Where a call is made in another process than it is decided in: whoever makes it waits for its place there."""

    def take(self, pool: str, state: TaskState, path: StepPath) -> bool:  # noqa: ARG002 -- whoever asks
        """Nobody waits before the intent."""
        return True
