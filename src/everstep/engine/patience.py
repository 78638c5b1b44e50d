"""A store that does not answer for a moment is asked again: no call is given up for that, and no task left standing."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from everstep.domain.errors import StoreFull, Unavailable
from everstep.domain.ids import Instant, TaskId
from everstep.engine.kit import Kit

T = TypeVar("T")

STORE_WAIT_MS: Final = 500


async def patiently(ask: Callable[[], Awaitable[T]], task: TaskId, kit: Kit) -> T:
    """The answer, whenever it comes."""
    while True:
        try:
            return await ask()
        except (Unavailable, StoreFull) as trouble:
            kit.sink.trouble("the store does not answer", trouble, task=task)
            await kit.clock.sleep_until(Instant(kit.clock.now() + STORE_WAIT_MS))
