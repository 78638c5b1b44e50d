"""Who is told of what has changed: lists, and resources that somebody subscribed to. Nothing of the SDK here."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

from everstep.doors.mcp.refusals import INVALID_PARAMS, Refused

List: TypeAlias = Literal["tools", "prompts", "resources"]
LISTS: Final[tuple[List, ...]] = ("tools", "prompts", "resources")
SUBSCRIPTIONS_MAX: Final = 100
"""Of one connection."""


class Bells:
    """Rung when a list has changed; whoever listens hears it once, however often it was rung meanwhile."""

    def __init__(self) -> None:
        self._ears: set[Ear] = set()

    def ring(self, *lists: str) -> None:
        """These are not what they were."""
        known: tuple[List, ...] = tuple(one for one in LISTS if one in lists)
        for ear in self._ears:
            ear.hear(known)

    @contextmanager
    def listening(self) -> "Iterator[Ear]":
        """Hears everything from now on."""
        ear = Ear()
        self._ears.add(ear)
        try:
            yield ear
        finally:
            self._ears.discard(ear)


class Ear:
    """What one listener has not been told yet."""

    def __init__(self) -> None:
        self._rung: dict[List, None] = {}
        self._news = asyncio.Event()

    def hear(self, lists: tuple[List, ...]) -> None:
        """Another change."""
        self._rung |= dict.fromkeys(lists)
        self._news.set()

    async def changed(self) -> tuple[List, ...]:
        """The lists that changed since the last time; waits for the first."""
        await self._news.wait()
        self._news.clear()
        rung, self._rung = tuple(self._rung), {}
        return rung


class Seats:
    """Connections of the older revision: each is told of lists, and of the resources it subscribed to."""

    def __init__(self) -> None:
        self._errands: dict[tuple[str, str], asyncio.Task[None]] = {}

    def sit_down(self, seat: str, bells: Bells, tell: Callable[[List], Awaitable[None]]) -> None:
        """From now on it hears of lists."""

        async def listen() -> None:
            with bells.listening() as ear:
                while True:
                    for one in await ear.changed():
                        await tell(one)

        self._begin(seat, "", listen())

    def subscribe(self, seat: str, uri: str, watching: Coroutine[Any, Any, None]) -> None:
        """From now on it hears of this resource; raises Refused for too many."""
        if sum(mine == seat and known != "" for mine, known in self._errands) >= SUBSCRIPTIONS_MAX:
            watching.close()
            raise Refused(INVALID_PARAMS, f"At most {SUBSCRIPTIONS_MAX} subscriptions", {"code": "rate_limited"})
        self._begin(seat, uri, watching)

    def unsubscribe(self, seat: str, uri: str) -> None:
        """No more of this one."""
        errand = self._errands.pop((seat, uri), None)
        if errand is not None:
            errand.cancel()

    def leave(self, seat: str) -> None:
        """The connection is gone."""
        for mine, uri in [*self._errands]:
            if mine == seat:
                self.unsubscribe(mine, uri)

    def close(self) -> None:
        """Nobody is told any more."""
        for seat in {seat for seat, _ in self._errands}:
            self.leave(seat)

    def _begin(self, seat: str, uri: str, errand: Coroutine[Any, Any, None]) -> None:
        self.unsubscribe(seat, uri)
        begun = asyncio.ensure_future(errand)
        self._errands[seat, uri] = begun
        begun.add_done_callback(lambda done: self._ended((seat, uri), done))

    def _ended(self, key: tuple[str, str], done: "asyncio.Task[None]") -> None:
        if self._errands.get(key) is done:
            del self._errands[key]
        if not done.cancelled():
            done.exception()  # a connection that has gone is no news
