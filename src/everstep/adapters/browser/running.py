"""One life of a browser: who its processes are, what it uses, when it is too old, and its end."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import psutil

from everstep.adapters.browser.place import MEMORY_BYTES, Place
from everstep.adapters.isolation.tree import lives, pss, tree
from everstep.domain.values import JsonObject
from everstep.ports.tool import ResourceExceeded, Uncertain

AGE_S: Final = 30 * 60.0
CLOSE_S: Final = 5.0
ANSWER_S: Final = 30.0
LOOK_S: Final = 0.5
Opening: TypeAlias = Callable[[socket.socket | None], Awaitable[str]]
"""Makes a proxy listen on this socket, or on one of its own, and says where it is."""


def too_large(used: int, most: int) -> ResourceExceeded:
    """It used more memory than it may."""
    what = f"the browser used {used:,} bytes of memory, and may use {most:,}"
    return ResourceExceeded(what, limit="memory", used=used, max=most)


def too_busy(used: float, most: float) -> ResourceExceeded:
    """It computed for longer than it may."""
    what = f"the browser used {used:.1f} s of CPU time, and may use {most:g}"
    return ResourceExceeded(what, limit="cpu_time", used=used, max=most)


@dataclass(eq=False)
class Running:
    """One life of it."""

    driver: Any
    browser: Any
    mark: str
    contexts_max: int
    held: JsonObject
    """What stands around it."""
    place: Place | None = None
    """None: it could not be started behind walls."""
    started_at: float = field(default_factory=time.monotonic)
    contexts: int = 0
    live: int = 0
    broken: bool = False
    memory_bytes: int = MEMORY_BYTES
    """What it may use."""
    _cpu_s: dict[int, float] = field(default_factory=dict)
    """What each of its processes had used when it was seen last."""

    def processes(self) -> list[psutil.Process]:
        """All of the browser, found by the mark on its command line."""
        for one in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(self.mark in word for word in one.cmdline()):
                    return tree(one.pid)
        return []

    def kill(self) -> None:
        """All of it, at once."""
        for one in self.processes():
            with contextlib.suppress(psutil.Error):  # whoever walled it in takes the others along
                one.kill()

    def memory(self) -> int:
        """Shared pages counted once."""
        total = 0
        for one in self.processes():
            with contextlib.suppress(psutil.Error, OSError):
                total += pss(one.pid)
        return total

    def cpu_s(self) -> float:
        """Of all its processes so far, but for what those that have ended did unseen."""
        for one in self.processes():
            with contextlib.suppress(psutil.Error):
                times = one.cpu_times()
                self._cpu_s[one.pid] = times.user + times.system
        return sum(self._cpu_s.values())

    def memory_ran_out(self) -> bool:
        """Whether the kernel had to end something of it."""
        return self.place is not None and self.place.memory_ran_out()

    async def new_context(self, opening: Opening, options: dict[str, Any]) -> Any:
        """One more visitor, with a way out of its own."""
        self.contexts += 1
        self.live += 1
        try:
            proxy = await opening(self.place.ways.pop() if self.place is not None else None)
            way = {"server": proxy, "bypass": "<-loopback>"}
            return await self.answered(self.browser.new_context(proxy=way, accept_downloads=False, **options))
        except BaseException:
            self.live -= 1
            raise

    async def answered(self, asked: Awaitable[Any]) -> Any:
        """One that was killed meanwhile, by the kernel or by us, may never answer, and does not say so."""
        answering = asyncio.ensure_future(asked)
        until = time.monotonic() + ANSWER_S
        try:
            while not (await asyncio.wait((answering,), timeout=LOOK_S))[0]:
                if self.memory_ran_out():
                    self.broken = True
                    raise too_large(self.memory_bytes + 1, self.memory_bytes)
                if not await self.lives():
                    raise Uncertain("the browser ended and did not answer", code="browser_crashed")
                if time.monotonic() > until:
                    self.broken = True
                    raise Uncertain(f"the browser does not answer within {ANSWER_S:g} s", code="browser_crashed")
            return answering.result()
        finally:
            answering.cancel()

    async def lives(self) -> bool:
        """Whether its processes are there; once they are not, it is broken."""
        self.broken = self.broken or not await asyncio.to_thread(self.processes)
        return not self.broken

    @property
    def old(self) -> bool:
        """Whether the next attempt should get another one."""
        return self.broken or self.contexts >= self.contexts_max or time.monotonic() - self.started_at > AGE_S

    async def close(self) -> None:
        """It ends; if it does not, it is ended."""
        left = await asyncio.to_thread(self.processes)
        for ending in (self.browser.close, self.driver.stop):
            with contextlib.suppress(Exception):  # it may be long dead; what is left is killed
                async with asyncio.timeout(CLOSE_S):
                    await ending()
        for one in left:
            if lives(one):
                with contextlib.suppress(psutil.Error):
                    one.kill()
        if self.place is not None:
            await asyncio.to_thread(self.place.close)
