"""`everstep mcp proxy`: any MCP server with a journal before it. On stdout nothing but the protocol."""

import os

import click

from everstep.bootstrap import run_process
from everstep.domain.version import __version__
from everstep.doors.cli.connect import settings_of
from everstep.doors.cli.session import session
from everstep.doors.cli.verbs import Verb


@click.command(
    cls=Verb,
    epilog="""
    everstep mcp proxy -- npx -y @modelcontextprotocol/server-filesystem .
    everstep mcp proxy --name docs --url https://docs.example/mcp
    """,
    context_settings={"ignore_unknown_options": True},
)
@click.option("--name", metavar="N", help="What the server is called here; else after its program.")
@click.option("--url", metavar="URL", default="", help="A server elsewhere, instead of a command.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def proxy(name: str | None, url: str, command: tuple[str, ...]) -> int:
    """Stand before an MCP server: the same tools, each call journaled, retried, gated, and there after a crash."""
    if bool(url) == bool(command):
        raise click.UsageError("name either a command after -- or --url URL")
    from everstep.doors.mcp.stdio import Behind, serve_proxy

    wire = os.dup(1)
    os.dup2(2, 1)  # whatever is printed from here on is no part of the protocol
    settings, current = settings_of(session()), session()
    behind = Behind(name=name, url=url, command=command)
    return run_process(serve_proxy(settings, behind, __version__, wire, warn=current.warn))
