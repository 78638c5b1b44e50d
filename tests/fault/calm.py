"""Virtual time that goes on as soon as nothing else can: no turn of the loop is spent on waiting.

Only where nothing comes from outside: no thread, no file, no socket.
"""

import asyncio
import contextlib
import gc
import tempfile
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar, copy_context
from typing import Any

from everstep.testing.clock import VirtualClock, VirtualTimer

TURNS_MAX = 5_000
INCARNATION: ContextVar[int] = ContextVar("INCARNATION", default=0)
"""Whose work it is: everything that an engine begins inherits it, so that all of it can be stopped."""


async def calm() -> None:
    """Until nobody can move but whoever asks."""
    loop: Any = asyncio.get_running_loop()
    for _ in range(TURNS_MAX):
        await asyncio.sleep(0)
        if not loop._ready and not getattr(loop, "held_back", ()):
            return


class CalmClock(VirtualClock):
    """Timer by timer, each when all is calm."""

    async def settle(self) -> None:
        await calm()

    def call_later(self, seconds: float, call: Callable[[], None]) -> VirtualTimer:
        """In the name of whoever wants it; of somebody who is frozen, when it has thawed."""
        whose = copy_context()
        return super().call_later(seconds, lambda: self._called(whose, call))

    def _called(self, whose: Context, call: Callable[[], None]) -> None:
        loop: Any = asyncio.get_running_loop()
        if whose.get(INCARNATION, 0) == getattr(loop, "frozen", None):
            loop.call_soon(call, context=whose)
        else:
            whose.copy().run(call)


@contextlib.contextmanager
def nowhere() -> Iterator[None]:
    """A folder without any project's settings; and what is loaded by now is no garbage of what comes."""
    gc.freeze()
    try:
        with tempfile.TemporaryDirectory(prefix="es-") as folder, contextlib.chdir(folder):
            yield
    finally:
        gc.unfreeze()
