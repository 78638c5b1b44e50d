"""One engine with all its doors in one process: opened in order, and stopped in order.

port -> store -> token -> health answers -> recovery scan -> ready
no new callers -> calls get their grace -> leases released, streams told good-bye -> port closed
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version

from everstep.domain.access import ALL_SCOPES, Principal
from everstep.domain.errors import NotAllowed
from everstep.domain.record import record
from everstep.doors.api import Api
from everstep.doors.dashboard import Pages
from everstep.doors.http import Gate, Listener, Mount, Streams, listen, make_app
from everstep.doors.local.place import announce, read_lock
from everstep.doors.mcp.opening import http_door
from everstep.doors.token_file import ensure_token
from everstep.facade.desk import Desk
from everstep.facade.engine import Engine
from everstep.settings import Settings

LEAVE_S = 1.0
"""How long streams have to say good-bye."""


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
    engine = Engine(config=settings)
    door = NetworkDoor(settings, listen(settings.serve), testing=testing)
    try:
        await engine.open(door.open)
        tell(await door.ready(engine))
        await stopping.wait()
    finally:
        door.refuse_more()
        await engine.close()
        await door.close()


class NetworkDoor:
    """The gate, and the port it stands at."""

    def __init__(self, settings: Settings, listener: Listener, *, testing: bool) -> None:
        self._settings = settings
        self._listener = listener
        self._testing = testing
        self._gate: Gate | None = None
        self._api: Api | None = None
        self._leave_mcp: Callable[[], Awaitable[None]] | None = None
        self.streams: Streams | None = None
        self._watch: asyncio.Task[None] | None = None

    async def open(self, desk: Desk) -> None:
        """Answer: at first only about health, until the engine is ready."""
        self._refuse_simulations(desk)
        settings = self._settings
        await ensure_token(settings.token_path, settings.owner, desk.access)
        desk.url = self._listener.public_url
        holder = {} if settings.store_path is None else read_lock(settings.lock_path)
        self._api = Api(
            desk,
            settings=settings,
            version=version("everstep"),
            incarnation=str(holder.get("incarnation") or ""),
        )
        self.streams = Streams(self._api, sockets_per_token=settings.events.sockets_per_token)
        pages = Pages() if settings.serve.ui else None
        self._gate = make_app(
            self._api, desk.access, settings, streams=self.streams, mounts=self._mounts(), pages=pages
        )
        await self._listener.start(self._gate)
        self._watch = asyncio.create_task(self._gate.watch())
        if settings.store_path is not None:
            announce(settings.lock_path, url=self._listener.url)

    async def ready(self, engine: Engine) -> Ready:
        """The address, and a way to sign in."""
        who = engine.who
        local = Principal(owner=self._settings.owner, actor=who.actor, scopes=ALL_SCOPES)
        code = await engine.desk.access.new_code(local)
        url = self._listener.public_url
        return Ready(url=url, sign_in_url=f"{url}/#code={code.value}", recovered=engine.recovered)

    def refuse_more(self) -> None:
        """Those who are inside may finish."""
        self._listener.refuse_more()

    async def close(self) -> None:
        """Say good-bye, then hang up."""
        if self._api is not None:
            self._api.close()
        leaving = [] if self._leave_mcp is None else [self._leave_mcp()]
        if self._gate is not None:
            leaving.append(self._gate.empty(LEAVE_S))
        await asyncio.gather(*leaving)
        if self._watch is not None:
            self._watch.cancel()
        await self._listener.close()

    def _mounts(self) -> dict[str, Mount]:
        """Other doors beside `/v1`, by path."""
        if self._api is None or not self._settings.serve.mcp:
            return {}
        door = http_door(self._api, self._settings)
        self._leave_mcp = door.close
        return {"/mcp": Mount(app=door, scope="read")}

    def _refuse_simulations(self, desk: Desk) -> None:
        """Tools that only pretend have no place where somebody relies on them."""
        pretend = sorted(entry.spec.name for entry in desk.tools if entry.spec.name.startswith("sim."))
        if pretend and not self._testing:
            raise NotAllowed(
                f"{pretend[0]} only pretends to work: such tools are for tests",
                what_to_do="take them out of `tools`, or say so: everstep serve --testing",
            )
