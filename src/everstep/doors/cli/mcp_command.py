"""`everstep mcp`: the engine for MCP clients. On stdin and stdout nothing but the protocol leaves on stdout."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from everstep.bootstrap import run_process
from everstep.domain.version import __version__
from everstep.doors.cli.connect import settings_of
from everstep.doors.cli.mcp_proxy import proxy
from everstep.doors.cli.mcp_servers_command import accept, add
from everstep.doors.cli.modules import load_tools
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Group, Verb

Json: TypeAlias = dict[str, Any]


@click.group(
    cls=Group,
    invoke_without_command=True,
    epilog="everstep mcp\neverstep mcp install cursor --write\neverstep mcp add github -- npx some-server",
)
@click.option("--http", is_flag=True, help="Over HTTP, as `everstep serve` does, at /mcp.")
@click.pass_context
def mcp(context: click.Context, *, http: bool) -> int | None:
    """Speak MCP on stdin and stdout until the client closes its end: workflows as prompts, tasks, tools."""
    if context.invoked_subcommand is not None:
        return None
    if http:
        return _over_http(session())
    wire = os.dup(1)
    os.dup2(2, 1)  # whatever is printed from here on is no part of the protocol
    settings = settings_of(session())
    load_tools(settings)
    from everstep.doors.mcp.stdio import serve_own

    return run_process(serve_own(settings, __version__, wire))


for verb in (proxy, add, accept):
    mcp.add_command(verb)


def _over_http(current: Session) -> int:
    """The engine with `/v1` and `/mcp`, without pages."""
    settings = settings_of(current, **{"serve.ui": False, "serve.mcp": True})
    load_tools(settings)

    async def whole() -> int:
        from everstep.doors.serve import Ready, serve

        def tell(ready: Ready) -> None:
            current.result_json({"type": "ready", "url": f"{ready.url}/mcp", "pid": os.getpid()})

        stopping = asyncio.Event()
        for name in ("SIGINT", "SIGTERM"):
            asyncio.get_running_loop().add_signal_handler(signal.Signals[name], stopping.set)
        await serve(settings, tell, stopping)
        return 0

    with redirect_stdout(sys.stderr):
        return run_process(whole())


def _plain(entry: Json) -> Json:
    return {"mcpServers": {"everstep": entry}}


def _vscode(entry: Json) -> Json:
    return {"servers": {"everstep": {"type": "stdio", **entry}}}


CLIENTS: Final[dict[str, tuple[str, Callable[[Json], Json]]]] = {
    "claude-code": (".mcp.json", _plain),
    "claude-desktop": ("~/.config/Claude/claude_desktop_config.json", _plain),
    "cursor": (".cursor/mcp.json", _plain),
    "vscode": (".vscode/mcp.json", _vscode),
    "windsurf": ("~/.codeium/windsurf/mcp_config.json", _plain),
}
"""Where each client keeps its servers, and how it spells one."""


@mcp.command(cls=Verb, epilog="everstep mcp install claude-code\neverstep mcp install cursor --write")
@click.argument("client", type=click.Choice([*CLIENTS]))
@click.option("--write", is_flag=True, help="Write it there; what else is there stays.")
def install(client: str, *, write: bool) -> int:
    """Show what a CLIENT needs to know of this project, or write it into its configuration."""
    current = session()
    settings = settings_of(current)
    file, spell = CLIENTS[client]
    path = settings.base / file if not file.startswith("~") else Path(file).expanduser()
    program = shutil.which("everstep") or sys.executable
    words = ["mcp"] if program.endswith("everstep") else ["-m", "everstep", "mcp"]
    said = spell({"command": program, "args": ["-C", str(settings.base), *words] if words == ["mcp"] else words})
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_merged(path, said), indent=2) + "\n", encoding="utf-8")
    if current.json:
        current.result_json({"client": client, "file": str(path), "written": write, "config": said})
    else:
        current.result(f"written: {path}" if write else f"{path}\n{json.dumps(said, indent=2)}")
    return 0


def _merged(path: Path, said: Json) -> Json:
    """What is there, with this server in it; a file that is no JSON object is not touched."""
    if not path.exists():
        return said
    try:
        known = json.loads(path.read_text(encoding="utf-8") or "{}")
    except ValueError as error:
        raise click.UsageError(f"{path} is no JSON: {error}") from error
    if not isinstance(known, dict):
        raise click.UsageError(f"{path} is no JSON object")
    for name, servers in said.items():
        known[name] = {**(known.get(name) or {}), **servers}
    return known
