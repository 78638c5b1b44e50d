"""The world of a demo, as a process of its own: `python -m everstep.demos.rig MODULE FOLDER PACE`.

It outlives every kill of the engine, and comes back to the same ports, so that a task goes on with the same addresses.
Effects are written down here, where they arrive.
"""

import asyncio
import importlib
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeAlias

from everstep.demos.folder import RIG, DemoFolder
from everstep.testing.rig import HttpRig

Build: TypeAlias = Callable[["World"], Awaitable[None]]


class World:
    """What a scenario builds its parts in."""

    def __init__(self, folder: DemoFolder, stack: AsyncExitStack, pace: float) -> None:
        self.folder = folder
        self.pace = pace
        """How slow it is."""
        self.parts = folder.rig
        self._stack = stack

    async def site(self, name: str) -> HttpRig:
        """A web site, at its old port if it had one."""
        rig = await self._stack.enter_async_context(HttpRig(port=self.parts.get(name, 0)))
        self.parts[name] = rig.port
        return rig

    def at_end(self, leave: Callable[[], Awaitable[None]]) -> None:
        """What has to be put away."""
        self._stack.push_async_callback(leave)


async def stand(build: Build, folder: DemoFolder, pace: float) -> None:
    """Until somebody ends it."""
    ended = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sign, ended.set)
    async with AsyncExitStack() as stack:
        world = World(folder, stack, pace)
        await build(world)
        (folder.path / RIG).write_text(json.dumps(world.parts), encoding="utf-8")
        print("ready", flush=True)
        await ended.wait()


if __name__ == "__main__":
    _, chosen, where, slow = sys.argv
    asyncio.run(stand(importlib.import_module(chosen).build, DemoFolder(Path(where)), float(slow)))
