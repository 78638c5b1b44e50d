"""Results that are asked for again: kept for a while, fetched once for all who ask at the same time.

When a fresh one cannot be had, an old one is better than none, and says that it is old.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from everstep.adapters.tools.http_answer import HttpAnswer
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolError

ENTRIES_MAX: Final = 2_000


@record
class Kept:
    """A result, how old it is, and whether it is older than it should be."""

    value: JsonObject
    age_s: float
    cached: bool
    stale: bool = False


@dataclass
class ResultCache:
    """In memory, the least used goes first."""

    fresh_s: float
    stale_s: float
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[str, tuple[float, JsonObject]] = field(default_factory=OrderedDict)
    _under_way: dict[str, asyncio.Future[JsonObject]] = field(default_factory=dict)

    async def get(self, key: str, fetch: Callable[[], Awaitable[JsonObject]]) -> Kept:
        """The one that is kept, if it is fresh; else a new one; else an old one; else the failure."""
        found = self._kept.get(key)
        age = 0.0 if found is None else self.clock() - found[0]
        if found is not None and age <= self.fresh_s:
            self._kept.move_to_end(key)
            return Kept(value=found[1], age_s=age, cached=True)
        try:
            return Kept(value=await self._fetched(key, fetch), age_s=0.0, cached=False)
        except (ToolError, HttpAnswer):
            if found is None or age > self.stale_s:
                raise
            return Kept(value=found[1], age_s=age, cached=True, stale=True)

    async def _fetched(self, key: str, fetch: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """One for all who ask meanwhile; whoever leaves does not take it from the others."""
        running = self._under_way.get(key)
        if running is None:
            running = self._under_way[key] = asyncio.ensure_future(fetch())
            running.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(running)

    def _keep(self, key: str, done: "asyncio.Future[JsonObject]") -> None:
        self._under_way.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = (self.clock(), done.result())
        self._kept.move_to_end(key)
        while len(self._kept) > ENTRIES_MAX:
            self._kept.popitem(last=False)
