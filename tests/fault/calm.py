"""Virtual time that goes on as soon as nothing else can: no turn of the loop is spent on waiting.

Only where nothing comes from outside: no thread, no file, no socket.
"""

import asyncio
import contextlib
import gc
import tempfile
from collections.abc import Iterator
from typing import Any

from everstep.testing.clock import VirtualClock

TURNS_MAX = 5_000


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


@contextlib.contextmanager
def nowhere() -> Iterator[None]:
    """A folder without any project's settings; and what is loaded by now is no garbage of what comes."""
    gc.freeze()
    try:
        with tempfile.TemporaryDirectory(prefix="es-") as folder, contextlib.chdir(folder):
            yield
    finally:
        gc.unfreeze()
