"""One browser of a worker: started when it is needed, a fresh context per attempt, exchanged before it grows old."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from everstep.adapters.browser.place import MEMORY_BYTES, Wanted
from everstep.adapters.browser.running import CLOSE_S, Opening, Running
from everstep.adapters.browser.starting import start
from everstep.domain.values import JsonObject
from everstep.ports.tool import Misconfigured

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CONTEXTS_MAX: Final = 50
PSS_BYTES: Final = 800_000_000
TOGETHER: Final = 8
"""Contexts of one browser at the same time: what it may use of memory suffices for them. The others wait."""


@dataclass(eq=False)
class SharedBrowser:
    """Whoever needs it."""

    executable: str = ""
    uid: int | None = None
    """As whom it runs, where we are root."""
    without: tuple[str, ...] = ()
    """Walls that are left out, by name; for tests of what the others hold."""
    starts: int = 0
    _running: Running | None = None
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TOGETHER))
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def found(self) -> str | None:
        """The program, if it is installed."""
        import shutil

        if self.executable:
            return shutil.which(self.executable)
        return next((path for name in NAMES if (path := shutil.which(name))), None)

    async def tried(self) -> JsonObject:
        """What stands around it, found by starting one that opens a blank page and ends."""
        async with self.context(nowhere, own_bytes=MEMORY_BYTES) as (context, running):
            await running.answered(context.new_page())
            return running.held

    @asynccontextmanager
    async def context(
        self, opening: Opening, *, own_bytes: int | None = None, **options: Any
    ) -> AsyncIterator[tuple[Any, Running]]:
        """A fresh context with no way out but what `opening` opens; in a browser of its own, if that has a limit."""
        turn = contextlib.nullcontext() if own_bytes is not None else self._turns
        async with turn, self._context(opening, own_bytes, options) as made:
            yield made

    @asynccontextmanager
    async def _context(
        self, opening: Opening, own_bytes: int | None, options: dict[str, Any]
    ) -> AsyncIterator[tuple[Any, Running]]:
        own = own_bytes is not None
        running = await (self._shared() if own_bytes is None else self._start(1, own_bytes))
        try:
            made = await running.new_context(opening, options)
        except Exception:
            if own:
                await running.close()
            if own or await running.lives():
                raise
            running = await self._shared()  # it had died before anything was done with it
            made = await running.new_context(opening, options)
        try:
            yield made, running
        except Exception:
            await running.lives()  # nobody else is to get a dead one, though word of its death is still on its way
            raise
        finally:
            running.live -= 1
            with contextlib.suppress(Exception):  # of a dead browser nothing can be closed
                async with asyncio.timeout(CLOSE_S):
                    await made.close()
            if own or (running.old and running.live == 0 and running is not self._running):
                await running.close()

    async def close(self) -> None:
        """The worker stops."""
        running, self._running = self._running, None
        if running is not None:
            await running.close()

    async def _shared(self) -> Running:
        async with self._starting:
            running = self._running
            if running is not None and not running.old and running.contexts and running.live == 0:
                running.broken = await asyncio.to_thread(running.memory) > PSS_BYTES
            if running is None or running.old:
                self._running = await self._start(CONTEXTS_MAX)
                if running is not None and running.live == 0:
                    await running.close()
            assert self._running is not None
            return self._running

    async def _start(self, ways: int, memory_bytes: int = MEMORY_BYTES) -> Running:
        program = self.found()
        if program is None:
            raise Misconfigured(
                "there is no Chromium here", code="browser_missing", what_to_do="install it: apt-get install chromium"
            )
        self.starts += 1
        return await start(
            Wanted(program=program, uid=self.uid, ways=ways, memory_bytes=memory_bytes, without=self.without)
        )


async def nowhere(way: socket.socket | None) -> str:
    """For whoever only wants to see it start."""
    if way is not None:
        way.close()
    return "http://127.0.0.1:9"
