"""Work that nobody waits for: it goes on beside the walks, and if it dies of a defect, somebody hears of it.

Above all, a task that this engine holds and cannot walk on with is handed back, so that it stands still for nobody.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from everstep.domain.errors import EverstepError
from everstep.domain.ids import Instant, TaskId
from everstep.domain.task import Lease
from everstep.engine.commit import is_held
from everstep.engine.kit import Kit
from everstep.engine.patience import STORE_WAIT_MS
from everstep.engine.stall import hand_back
from everstep.ports.sink import Sink


class Errands:
    """What is under way when the engine stops is left to whoever comes next."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._sent: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, errand: Coroutine[Any, Any, None]) -> None:
        """Begin it."""
        sent = asyncio.create_task(errand)
        self._sent.add(sent)
        sent.add_done_callback(self._done)

    def _done(self, sent: asyncio.Task[None]) -> None:
        self._sent.discard(sent)
        defect = None if sent.cancelled() else sent.exception()
        if defect is not None:
            self._sink.trouble("an errand died", defect)

    async def end(self, *others: Iterable[asyncio.Task[None]]) -> None:
        """Cancel all of it, and these, and wait until they have ended."""
        ending = [one for group in (*others, self._sent) for one in group]
        for one in ending:
            one.cancel()
        if ending:
            await asyncio.wait(ending)


async def give_up(lease: Lease, kit: Kit, has: Callable[[TaskId], bool], *, died: bool = False) -> None:
    """Hand back a task that is still ours, as soon as the store lets us; unless somebody `has` it again by then."""
    back = False
    while not back and not kit.closing:
        await kit.clock.sleep_until(Instant(kit.clock.now() + STORE_WAIT_MS))
        try:
            (state,) = await kit.store.load_tasks((lease.task,))
            if not is_held(state, lease) or state.terminal or has(lease.task):
                return
            back = await hand_back(state, kit, died=died)
        except EverstepError as error:
            kit.sink.trouble("a task cannot be handed back", error, task=lease.task)
