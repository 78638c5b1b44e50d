"""After a write of which nobody knows whether it was made: as soon as the store answers, everything is looked at again.

It may have ended a task, closed a breaker, carried out a command, or taken a lease, and whoever sent it has heard
nothing: so watchers go back to the journal, breakers are taken as the store has them, what is held here is walked or
handed back, and what can be claimed is claimed.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from everstep.domain.errors import StoreError
from everstep.domain.ids import Instant
from everstep.domain.states import HELD
from everstep.domain.task import Lease
from everstep.engine.errands import give_up
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.engine.patience import STORE_WAIT_MS
from everstep.ports.store import TaskFilter

PAGE: Final = 500
NOT_TAKEN: Final = "overloaded"
"""The code of a refusal before anything was handed over: about that there is no doubt."""


class Doubt:
    """One engine's."""

    def __init__(self, kit: Kit, loop: Loop) -> None:
        self._kit = kit
        self._loop = loop
        self._stirred = asyncio.Event()

    def stir(self, code: str) -> None:
        """The store has not answered a write, for this reason."""
        if code != NOT_TAKEN:
            self._stirred.set()

    async def watch(self) -> None:
        """Until dropped."""
        kit = self._kit
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await kit.clock.sleep_until(Instant(kit.clock.now() + STORE_WAIT_MS))
            try:
                await self._look()
            except StoreError as error:
                self.stir(error.code)

    async def _look(self) -> None:
        kit, loop, feed = self._kit, self._loop, self._kit.feed
        kit.breakers.compare(await kit.store.troubles.breakers())
        await asyncio.gather(*(give_up(lease, kit, loop.has) for lease in await self._unwalked()))
        for task in feed.watched:
            feed.look_again(task)
        kit.expect(kit.clock.now())
        loop.look_again()

    async def _unwalked(self) -> Sequence[Lease]:
        """What this engine holds, and nobody here knows of."""
        loop, me = self._loop, self._kit.worker
        if loop.holder != me:
            return ()
        found: list[Lease] = []
        before, cursor, whole = loop.claiming, None, False
        while not whole:
            page = await self._kit.store.list_tasks(TaskFilter(statuses=HELD, limit=PAGE, cursor=cursor))
            found += [Lease(task=one.id, epoch=one.epoch, worker=me) for one in page.items if one.worker == me]
            cursor, whole = page.next_cursor, page.next_cursor is None
        if before or loop.claiming:  # what was claimed meanwhile is not walked yet: later
            self._stirred.set()
            return ()
        return [lease for lease in found if not loop.has(lease.task)]
