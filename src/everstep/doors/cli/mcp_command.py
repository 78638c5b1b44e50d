"""`everstep mcp`: the engine for MCP clients, on stdin and stdout. Nothing but the protocol leaves on stdout."""

import os
import sys

import click

from everstep.bootstrap import run_process
from everstep.doors.cli.connect import settings_of
from everstep.doors.cli.modules import load_tools
from everstep.doors.cli.session import own_version, session
from everstep.doors.cli.verbs import Verb
from everstep.settings import Settings


@click.command(cls=Verb, epilog="everstep mcp")
def mcp() -> int:
    """Speak MCP on stdin and stdout until the client closes its end: workflows as prompts, tasks, tools."""
    wire = os.dup(1)
    os.dup2(2, 1)  # whatever is printed from here on is no part of the protocol
    settings = settings_of(session())
    load_tools(settings)
    return run_process(_serve(settings, wire))


async def _serve(settings: Settings, wire: int) -> int:
    from everstep.doors.mcp.channel import Changing
    from everstep.doors.mcp.desk import DoorDesk
    from everstep.doors.mcp.opening import Finder, exposed_in, limits_in, now_ms, published_in
    from everstep.doors.mcp.published import Book
    from everstep.doors.mcp.server import McpDoor, serve_stdio

    book = Book(published_in(settings), exposed_in(settings))
    finder = Finder(settings)
    channel = Changing(finder.find)
    try:
        door = McpDoor(DoorDesk(channel, book, limits_in(settings), now_ms), owner=settings.owner, stdio=True)
        await door.check()
        with os.fdopen(wire, "wb", closefd=False) as out:
            await serve_stdio(door, own_version(), sys.stdin.buffer, out)
    finally:
        await finder.close()
    return 0
