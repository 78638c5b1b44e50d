"""Watching: the desk's view of all tasks at once, as they change."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from everstep.domain.errors import EngineClosed
from everstep.engine.feed import Hear, Notice
from everstep.engine.kit import Kit
from everstep.ports.sink import Listener
from everstep.ports.store import Placed

__all__ = ["Notice", "Watching"]

PAGE: Final = 500


class Watching:
    """What happens over all tasks, in the order of the commits; and what is said in between."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear what running calls say; returns how to stop."""
        return self._kit.sink.listen(listener)

    def notices(self, hear: Hear) -> Callable[[], None]:
        """Hear of what is no event of a task; returns how to stop."""
        return self._kit.feed.hear(hear)

    async def last(self) -> Placed | None:
        """The newest event of all."""
        return await self._kit.store.tail.last()

    async def read(self, after: int, limit: int = PAGE, owner: str | None = None) -> Sequence[Placed]:
        """What comes after a place, of one owner or of everybody."""
        return await self._kit.store.tail.read(after, limit, owner)

    async def follow(self, after: int, owner: str | None = None) -> AsyncIterator[Sequence[Placed]]:
        """Page by page, then live. What the feed says is only a nudge to read on, so nothing is missed or doubled."""
        subscription = self._kit.feed.join(None)
        try:
            while True:
                subscription.caught_up()
                page = await self.read(after, PAGE, owner)
                if page:
                    after = page[-1].place
                    yield page
                if len(page) < PAGE:
                    if subscription.closed:
                        return
                    await subscription.wait()
        except EngineClosed:
            return
        finally:
            subscription.close()
