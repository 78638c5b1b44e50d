"""Starts a browser: behind walls, and only where that cannot be done at all, without.

Chromium is the system's own; nothing is downloaded. Playwright speaks to it over a pipe.
"""

import asyncio
import os
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from everstep.adapters.browser.place import Wanted, place_for
from everstep.adapters.browser.running import Running, too_large
from everstep.domain.values import JsonObject
from everstep.ports.tool import Misconfigured, ToolError, Uncertain

START_S: Final = 30.0
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
ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR")
"""What a browser without walls is told of ours; one behind walls is told nothing."""


async def start(wanted: Wanted) -> Running:
    """A new one; raises `browser_missing` and `browser_crashed`."""
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        raise Misconfigured(
            "the browser tools need Playwright",
            code="browser_missing",
            what_to_do="pip install 'everstep[browser]'",
        ) from None
    driver = await async_playwright().start()
    try:
        for without in ((), ("namespaces",)):  # where they may be made, they may still be of no use
            if running := await _walled(driver, replace(wanted, without=(*wanted.without, *without))):
                return running
        return await _bare(driver, wanted)
    except BaseException as error:
        await driver.stop()
        if isinstance(error, Exception) and not isinstance(error, ToolError):
            what = f"the browser did not start: {str(error)[:300]}"
            raise Uncertain(what, code="browser_crashed") from error
        raise


async def _walled(driver: Any, wanted: Wanted) -> Running | None:
    """None where it ends at once; one that only takes too long would not do better without walls."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as TooLong

    try:
        place = await asyncio.to_thread(place_for, wanted)
    except OSError:
        return None
    telling = asyncio.ensure_future(place.told())
    mark = _mark()
    try:
        browser = await _launched(driver, place.program, mark, chromium_sandbox=True)
        await telling
    except BaseException as error:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        ran_out = place.memory_ran_out()
        await asyncio.to_thread(place.close)
        if ran_out:  # without walls it would only take more
            raise too_large(wanted.memory_bytes + 1, wanted.memory_bytes) from error
        if isinstance(error, Error) and not isinstance(error, TooLong):
            return None
        raise
    running = Running(driver, browser, mark, wanted.ways, place.held, place, memory_bytes=wanted.memory_bytes)
    return _running(running)


async def _bare(driver: Any, wanted: Wanted) -> Running:
    mark, uid = _mark(), os.getuid()
    browser = await _launched(driver, wanted.program, mark, chromium_sandbox=uid != 0)
    missing: list[Any] = ["uid"] * (uid == 0) + ["landlock", "seccomp", "network"]
    held: JsonObject = {
        "level": "limited",
        "network": "host",
        "browser_sandbox": uid != 0,
        "uid": uid,
        "namespaces": [],
        "cgroup": "none",
        "landlock_abi": 0,
        "seccomp": False,
        "missing": missing,
    }
    return _running(Running(driver, browser, mark, wanted.ways, held))


def _mark() -> str:
    return f"--everstep={uuid4().hex}"


async def _launched(driver: Any, program: str, mark: str, *, chromium_sandbox: bool) -> Any:
    return await driver.chromium.launch(
        executable_path=program,
        args=[*ARGUMENTS, mark],
        env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        chromium_sandbox=chromium_sandbox,
        timeout=START_S * 1000,
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )


def _running(running: Running) -> Running:
    running.browser.on("disconnected", lambda _: setattr(running, "broken", True))
    return running
