"""Renewing a credential once for all who were refused with the old one: single flight per tool and target."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from everstep.domain.breaker import BreakerKey

KEPT_MAX: Final = 1_000


class Renewals:
    """Who renews what, and what was renewed when. Lives on the engine's loop."""

    def __init__(self) -> None:
        self.count = 0
        """Renewals so far; a call notes it as it starts, so that it knows which came after."""
        self._under_way: dict[BreakerKey, asyncio.Task[bool]] = {}
        self._done: dict[BreakerKey, int] = {}

    async def renew(self, key: BreakerKey, since: int, work: Callable[[], Coroutine[object, object, bool]]) -> bool:
        """Whether the credential was renewed after renewal number `since`; by us, or by whoever was first."""
        if self._done.get(key, 0) > since:
            return True
        going = self._under_way.get(key)
        if going is None:
            going = self._under_way[key] = asyncio.ensure_future(self._work(key, work))
        return await asyncio.shield(going)

    async def _work(self, key: BreakerKey, work: Callable[[], Coroutine[object, object, bool]]) -> bool:
        try:
            renewed = await work()
        finally:
            del self._under_way[key]
        if renewed:
            if len(self._done) >= KEPT_MAX:
                self._done.clear()
            self.count += 1
            self._done[key] = self.count
        return renewed
