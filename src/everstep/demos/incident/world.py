"""A service that is sick until it is restarted, somebody who restarts it, and a second look at it from elsewhere."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process

from everstep.demos.folder import WORLD, happened
from everstep.demos.rig import World
from everstep.demos.stage import following
from everstep.testing.rig import Asked, Writer, answer


class Keeper:
    """Looks after the service's process."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._process: Process | None = None

    async def start(self, *, well: bool) -> Process:
        """A new process, in the place of the old one."""
        await self.stop()
        port = str(self._world.parts.get("service", 0))
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "everstep.demos.incident.checkout", port, "well" if well else "sick",
            stdout=PIPE, preexec_fn=following(),
        )  # fmt: skip
        assert process.stdout is not None
        self._world.parts["service"] = int(await process.stdout.readline())
        return process

    async def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            await self._process.wait()
            self._process = None

    async def restart(self, asked: Asked, writer: Writer) -> bool:
        """Once more; the world sees every start."""
        process = await self.start(well=True)
        happened(self._world.folder.path / WORLD, step="restart", key=asked.body.decode(), output={"pid": process.pid})
        return await answer(200, str(process.pid).encode())(asked, writer)


async def build(world: World) -> None:
    """The service, its keeper, and the other site."""
    keeper = Keeper(world)
    await keeper.start(well=world.folder.reached("restart"))
    world.at_end(keeper.stop)
    (await world.site("keeper")).on("/restart", keeper.restart)
    (await world.site("backup")).on("/checkout/probe", answer(200, {"up": False, "seen": "503"}))
