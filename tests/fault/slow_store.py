"""A store in memory that can fail, and in which time passes, as on a machine that is busy.

Every verb of the port, those of its other books too, waits before it does something and again before it tells. So an
engine can die between the two, and whatever else comes due meanwhile comes between.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any

from everstep.adapters.stores.memory import MemoryStore
from everstep.domain.ids import Instant
from everstep.domain.task import StepCommit
from everstep.errors import Unavailable
from everstep.ports.store import Commit
from everstep.testing.clock import VirtualClock

BOOKS = ("troubles", "housekeeping", "marks", "history", "signals", "tail", "handles")


class SimStore(MemoryStore):
    """`latency_ms`: the most that either wait takes."""

    def __init__(self, clock: VirtualClock, chance: random.Random, latency_ms: int = 0) -> None:
        super().__init__()
        self.refusals = 0
        self.latency_ms = latency_ms
        self._clock = clock
        self._chance = chance
        if latency_ms:
            for book in (self, *(getattr(self, name) for name in BOOKS)):
                self._slow_down(book)

    async def commit_steps(self, commits: Sequence[StepCommit]) -> Sequence[Commit]:
        await asyncio.sleep(0)
        if self.refusals > 0:
            self.refusals -= 1
            raise Unavailable("the store fails")
        return await super().commit_steps(commits)

    def fail(self, draw: float) -> None:
        """One to three commits to come are refused."""
        self.refusals = 1 + int(draw * 3)

    def heal(self) -> None:
        """No more of that."""
        self.refusals = 0

    def hurry(self) -> None:
        """From now on nothing takes time."""
        self.latency_ms = 0

    def standing(self) -> dict[str, str]:
        """How every task stands, for whoever only looks on."""
        return {task: kept.row.status.value for task, kept in self._tasks.items()}

    def _slow_down(self, book: object) -> None:
        for name in dir(type(book)):
            verb = getattr(book, name)
            if not name.startswith("_") and iscoroutinefunction(verb):
                setattr(book, name, self._slow(verb))

    def _slow(self, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def called(*args: Any, **kwargs: Any) -> Any:
            await self._wait()
            told = await verb(*args, **kwargs)
            await self._wait()
            return told

        return called

    async def _wait(self) -> None:
        if self.latency_ms:
            await self._clock.sleep_until(Instant(self._clock.now() + self._chance.randrange(self.latency_ms)))
