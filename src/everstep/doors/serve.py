"""One engine with all its doors in one process: opened in order, and stopped in order.

port -> store -> token -> health answers -> recovery scan -> ready
no new callers -> calls get their grace -> leases released, streams told good-bye -> port closed
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from everstep.domain.access import ALL_SCOPES, Principal
from everstep.domain.errors import NotAllowed
from everstep.domain.record import record
from everstep.doors.entrance import Entrance
from everstep.doors.http import Listener, listen
from everstep.doors.local.place import announce
from everstep.facade.desk import Desk
from everstep.facade.engine import Engine
from everstep.settings import Settings


@record
class Ready:
    """What whoever started it wants to know."""

    url: str
    sign_in_url: str
    recovered: int


async def serve(
    settings: Settings, tell: Callable[[Ready], None], stopping: asyncio.Event, *, testing: bool = False
) -> None:
    """Until `stopping` is set; raises what keeps it from starting, and then nothing is left open."""
    listener = listen(settings.serve)
    found = replace(settings.serve, port=listener.port)  # whatever it is, no tool may use it
    door = NetworkDoor(replace(settings, serve=found), listener, testing=testing)
    try:
        engine = Engine(config=door.settings)
        try:
            await engine.open(door.open)
            tell(await door.ready(engine))
            await stopping.wait()
        finally:
            door.refuse_more()
            await engine.close()
    finally:
        await door.close()


class NetworkDoor:
    """The gate, and the port it stands at."""

    def __init__(self, settings: Settings, listener: Listener, *, testing: bool) -> None:
        self.settings = settings
        self._listener = listener
        self._testing = testing
        self.entrance: Entrance | None = None

    async def open(self, desk: Desk) -> None:
        """Answer: at first only about health, until the engine is ready."""
        self._refuse_simulations(desk)
        settings = self.settings
        desk.url = self._listener.public_url
        self.entrance = await Entrance.open(desk, settings)
        await self._listener.start(self.entrance.gate)
        if settings.store_path is not None:
            announce(settings.lock_path, url=self._listener.url)

    async def ready(self, engine: Engine) -> Ready:
        """The address, and a way to sign in."""
        who = engine.who
        local = Principal(owner=self.settings.owner, actor=who.actor, scopes=ALL_SCOPES)
        code = await engine.desk.access.new_code(local)
        url = self._listener.public_url
        return Ready(url=url, sign_in_url=f"{url}/#code={code.value}", recovered=engine.recovered)

    def refuse_more(self) -> None:
        """Those who are inside may finish."""
        self._listener.refuse_more()

    async def close(self) -> None:
        """Say good-bye, then hang up."""
        if self.entrance is not None:
            await self.entrance.leave()
        await self._listener.close()

    def _refuse_simulations(self, desk: Desk) -> None:
        """Tools that only pretend have no place where somebody relies on them."""
        pretend = sorted(entry.spec.name for entry in desk.tools if entry.spec.name.startswith("sim."))
        if pretend and not self._testing:
            raise NotAllowed(
                f"{pretend[0]} only pretends to work: such tools are for tests",
                what_to_do="take them out of `tools`, or say so: everstep serve --testing",
            )
