"""One browser of a worker: started when it is needed, a fresh context per attempt, exchanged before it grows old.

Chromium is the system's own; nothing is downloaded. Playwright speaks to it over a pipe.
"""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import psutil

from everstep.adapters.isolation.tree import lives, pss, tree
from everstep.domain.values import JsonObject
from everstep.ports.tool import Misconfigured, Uncertain

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CONTEXTS_MAX: Final = 50
AGE_S: Final = 30 * 60.0
PSS_BYTES: Final = 800_000_000
START_S: Final = 30.0
CLOSE_S: Final = 5.0
ARGUMENTS: Final = (
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--no-first-run",
)
"""No names are looked up, nothing is sent but through the proxy."""


@dataclass(eq=False)
class Running:
    """One life of it."""

    driver: Any
    browser: Any
    mark: str
    started_at: float
    contexts: int = 0
    live: int = 0
    broken: bool = False

    def processes(self) -> list[psutil.Process]:
        """All of the browser, found by the mark on its command line."""
        for one in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(self.mark in word for word in one.cmdline()):
                    return tree(one.pid)
        return []

    def memory(self) -> int:
        """Shared pages counted once."""
        total = 0
        for one in self.processes():
            with contextlib.suppress(psutil.Error, OSError):
                total += pss(one.pid)
        return total

    async def new_context(self, proxy: str, options: dict[str, Any]) -> Any:
        """One more visitor."""
        self.contexts += 1
        self.live += 1
        try:
            way = {"server": proxy, "bypass": "<-loopback>"}
            return await self.browser.new_context(proxy=way, accept_downloads=False, **options)
        except BaseException:
            self.live -= 1
            raise

    async def lives(self) -> bool:
        """Whether its processes are there; once they are not, it is broken."""
        self.broken = self.broken or not await asyncio.to_thread(self.processes)
        return not self.broken

    @property
    def old(self) -> bool:
        """Whether the next attempt should get another one."""
        return self.broken or self.contexts >= CONTEXTS_MAX or time.monotonic() - self.started_at > AGE_S

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


@dataclass(eq=False)
class SharedBrowser:
    """Whoever needs it."""

    executable: str = ""
    starts: int = 0
    _running: Running | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def found(self) -> str | None:
        """The program, if it is installed."""
        if self.executable:
            return shutil.which(self.executable)
        return next((path for name in NAMES if (path := shutil.which(name))), None)

    @property
    def sandboxed(self) -> bool:
        """Whether Chromium walls in its own pages: root cannot."""
        return os.getuid() != 0

    def containment(self) -> JsonObject:
        """What stands around it."""
        missing: list[Any] = ["uid"] * (os.getuid() == 0) + ["landlock", "seccomp"]
        return {
            "level": "limited",
            "network": "proxy",
            "browser_sandbox": self.sandboxed,
            "uid": os.getuid(),
            "namespaces": [],
            "cgroup": "none",
            "landlock_abi": 0,
            "seccomp": False,
            "missing": missing,
        }

    @asynccontextmanager
    async def context(self, proxy: str, *, own: bool = False, **options: Any) -> AsyncIterator[tuple[Any, Running]]:
        """A fresh context whose only way out is `proxy`; with `own`, in a browser that nobody else uses."""
        running = await self._start() if own else await self._shared()
        try:
            made = await running.new_context(proxy, options)
        except Exception:
            if own:
                await running.close()
            if own or await running.lives():
                raise
            running = await self._shared()  # it had died before anything was done with it
            made = await running.new_context(proxy, options)
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
                self._running = await self._start()
                if running is not None and running.live == 0:
                    await running.close()
            assert self._running is not None
            return self._running

    async def _start(self) -> Running:
        try:
            from playwright.async_api import async_playwright
        except ImportError:
            raise Misconfigured(
                "the browser tools need Playwright",
                code="browser_missing",
                what_to_do="pip install 'everstep[browser]'",
            ) from None
        program = self.found()
        if program is None:
            raise Misconfigured(
                "there is no Chromium here", code="browser_missing", what_to_do="install it: apt-get install chromium"
            )
        self.starts += 1
        mark = f"--everstep={uuid4().hex}"
        driver = await async_playwright().start()
        try:
            browser = await driver.chromium.launch(
                executable_path=program,
                args=[*ARGUMENTS, mark],
                chromium_sandbox=self.sandboxed,
                timeout=START_S * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Exception as error:
            await driver.stop()
            raise Uncertain(f"the browser did not start: {str(error)[:300]}", code="browser_crashed") from error
        running = Running(driver=driver, browser=browser, mark=mark, started_at=time.monotonic())
        browser.on("disconnected", lambda _: setattr(running, "broken", True))
        return running
