"""The door: the families of methods on one desk, who asks, and who is told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from everstep.domain.record import record
from everstep.doors.mcp.bridge import EXTENSION, LEGACY, MODERN
from everstep.doors.mcp.calls import Calls
from everstep.doors.mcp.channel import Caller, Json
from everstep.doors.mcp.completing import Completion
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_tools import ENGINE_TOOLS
from everstep.doors.mcp.listening import Seats
from everstep.doors.mcp.prompts import Prompts
from everstep.doors.mcp.resources import Resources
from everstep.doors.mcp.tasks import Tasks
from everstep.doors.mcp.turns import Turns


@record
class Face:
    """What a server says of itself, and which methods it does not have."""

    name: str
    version: str
    instructions: str | None = None
    without: frozenset[str] = frozenset()


class McpDoor:
    """The four families of methods on one desk."""

    def __init__(self, desk: DoorDesk, *, owner: str, stdio: bool) -> None:
        self.desk = desk
        self.face: Face | None = None
        """Another's, where it only stands before another."""
        self.prompts = Prompts(desk)
        self.calls = Calls(desk)
        self.tasks = Tasks(desk)
        self.resources = Resources(desk)
        self.completion = Completion(desk)
        self.turns = Turns(calls=desk.limits.calls_per_owner, streams=desk.limits.streams_per_owner)
        self.seats = Seats()
        self._owner = owner
        self._stdio = stdio
        self._watching: set[asyncio.Task[None]] = set()

    def client(self, ctx: Any) -> Client:  # noqa: ANN401 -- the SDK's context
        """Who asks; from the connection alone, never from parameters."""
        capabilities = ctx.session.client_capabilities
        extensions = (getattr(capabilities, "extensions", None) or {}) if capabilities is not None else {}
        meta = (ctx.params or {}).get("_meta") or {}
        info = meta.get("io.modelcontextprotocol/clientInfo") or {}
        params = ctx.session.client_params
        name = info.get("name") or (params.client_info.name if params is not None else "client")
        owner = self._owner
        scope = getattr(ctx.request, "scope", None)
        principal = scope.get("everstep.principal") if isinstance(scope, dict) else None
        scopes = None
        if principal is not None:
            owner, scopes = principal.owner, principal.scopes
        return Client(
            caller=Caller(owner=owner, name=_printable(str(name))),
            era=MODERN if ctx.protocol_version == MODERN else LEGACY,
            elicits=bool(capabilities is not None and capabilities.elicitation is not None),
            tasks=ctx.protocol_version == MODERN and EXTENSION in extensions,
            stdio=self._stdio,
            scopes=scopes,
        )

    async def check(self) -> None:
        """Raises at the start: names that collide, plans whose tools are not there."""
        caller = Caller(owner=self._owner)
        await self.desk.check_plans(caller)
        self.desk.book.tools(await self.desk.known_tools(caller), ENGINE_TOOLS)

    def watch(self, client: Client, handle: str, tell: Callable[[Json], Awaitable[None]]) -> None:
        """Tell the session that made a task of its changes (2025-11-25)."""

        async def watching() -> None:
            async for task in self.tasks.changes(client, handle):
                await tell(task)

        errand = asyncio.ensure_future(watching())
        self._watching.add(errand)
        errand.add_done_callback(self._done)

    def _done(self, errand: "asyncio.Task[None]") -> None:
        self._watching.discard(errand)
        if not errand.cancelled():
            errand.exception()  # a session that has gone is no news

    def close(self) -> None:
        """Nobody is told any more."""
        self.seats.close()
        for errand in self._watching:
            errand.cancel()


def _printable(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable() and letter not in ":@")[:64] or "client"
