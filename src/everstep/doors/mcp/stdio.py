"""The door on stdin and stdout: our own, or before somebody else's server. Ends when the other side closes its end."""

import asyncio
import os
import re
import sys
from collections.abc import Callable
from typing import Final

from everstep.bootstrap import Proxied
from everstep.domain.errors import Unavailable
from everstep.domain.record import record
from everstep.doors.mcp.channel import Caller, Changing, Channel, ask
from everstep.doors.mcp.desk import DoorDesk
from everstep.doors.mcp.opening import Finder, door_of, limits_in, now_ms
from everstep.doors.mcp.proxy import proxy_door
from everstep.doors.mcp.published import Book
from everstep.doors.mcp.server import serve_stdio
from everstep.doors.mcp.story import standing
from everstep.ports.tool import ToolError
from everstep.settings import Settings

SETTLE_S: Final = 3600.0


@record
class Behind:
    """The server that a proxy is to stand before: a command, or where it is."""

    name: str | None
    url: str
    command: tuple[str, ...]


async def serve_own(settings: Settings, version: str, wire: int) -> int:
    """The engine for MCP clients."""
    finder = Finder(settings)
    try:
        door = door_of(Changing(finder.find), settings)
        await door.check()
        with os.fdopen(wire, "wb", closefd=False) as out:
            await serve_stdio(door, version, sys.stdin.buffer, out)
    finally:
        await finder.close()
    return 0


async def serve_proxy(
    settings: Settings, behind: Behind, version: str, wire: int, *, warn: Callable[[str], None]
) -> int:
    """Another's server, with a store of its own before it."""
    name = behind.name or name_for(behind.command, behind.url)
    assert settings.store_path is not None
    store = settings.store_path.parent / "proxy" / f"{name}.db"
    store.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = settings.with_store(str(store)).without(f"mcp.servers.{name}")  # its tools are those of the proxy
    remote = Proxied(settings, name, behind.command, behind.url)
    try:
        family = await remote.open()
    except ToolError as error:
        await remote.close()
        raise Unavailable(f"'{name}' cannot be reached: {error}", what_to_do="try the server by itself") from error
    for tool in remote.withheld:
        warn(f"'{tool}' of {name} is withheld: it is not what it was. To take it as it is: rm {remote.pinned_in}")
    finder = Finder(own, (family,))
    channel = Changing(finder.find)
    try:
        door = proxy_door(DoorDesk(channel, Book(()), limits_in(own), now_ms), remote, own.owner)
        with os.fdopen(wire, "wb", closefd=False) as out:
            await serve_stdio(door, version, sys.stdin.buffer, out)
        if finder.carries:
            await settled(channel, own.owner)
    finally:
        await finder.close()
        await remote.close()
    return 0


async def settled(channel: Channel, owner: str) -> None:
    """Until no call is under way: the client has gone, but whoever comes back wants its result."""
    caller = Caller(owner=owner)
    try:
        async with asyncio.timeout(SETTLE_S):
            while under_way := (await ask(channel, caller, "GET /v1/tasks?status=queued,running&limit=1"))["items"]:
                await standing(channel, caller, under_way[0]["id"])
    except TimeoutError:
        return


def name_for(words: tuple[str, ...], url: str) -> str:
    """What a server is called if nobody says: after its package, its program or its host."""
    said = url.partition("://")[2].partition("/")[0] if url else ""
    said = said or next((word for word in words[1:] if not word.startswith("-")), words[0] if words else "")
    last = said.rstrip("/").rpartition("/")[2].partition("@")[0]
    plain = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")
    return plain if plain[:1].isalpha() else f"server-{plain}".rstrip("-")
