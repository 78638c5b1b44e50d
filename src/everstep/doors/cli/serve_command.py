"""`everstep serve`: the engine for programs and browsers, until somebody stops it."""

import asyncio
import contextlib
import os
import signal
import sys
import webbrowser
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from everstep.bootstrap import run_process
from everstep.domain.version import __version__
from everstep.doors.cli.connect import settings_of, shown
from everstep.doors.cli.modules import load_tools
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import plural
from everstep.settings import Settings

Json: TypeAlias = dict[str, Any]

EXIT_INTERRUPTED: Final = 130


@click.command(
    cls=Verb,
    epilog="""
    everstep serve
    everstep serve --port 0 --open
    everstep serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """,
)
@click.option("--host", metavar="H", help="Where to listen [127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port; 0: any that is free [7717].")
@click.option("--no-ui", is_flag=True, help="Without the dashboard.")
@click.option("--no-mcp", is_flag=True, help="Without MCP.")
@click.option("--open", "browser", is_flag=True, help="Open it in a browser, signed in.")
@click.option("--tls-cert", metavar="F", help="The certificate, with its chain, in PEM.")
@click.option("--tls-key", metavar="F", help="Its key.")
@click.option("--behind-tls-proxy", is_flag=True, help="A proxy in front of it speaks TLS.")
@click.option("--testing", is_flag=True, help="Allow tools that only pretend (sim.*).")
def serve(*, browser: bool, testing: bool, **flags: Any) -> int:  # noqa: ANN401 -- click's own arguments
    """Carry every task, and answer programs and browsers, until Ctrl-C or SIGTERM."""
    current = session()
    settings = settings_of(current, **_said(flags))
    load_tools(settings)

    async def whole() -> int:
        from everstep.doors.serve import Ready, serve

        def tell(ready: Ready) -> None:
            said = _ready(settings, ready.url, ready.sign_in_url, ready.recovered)
            if current.json:
                current.result_json(said)
            else:
                _greet(current, settings, said)
            if browser:
                webbrowser.open(ready.sign_in_url)

        stopping = asyncio.Event()
        stop_on_signals(stopping, current)
        await serve(settings, tell, stopping, testing=testing)
        if current.json:
            current.result_json({"type": "result", "ok": True, "exit_code": 0})
        else:
            current.say("stopped; nothing is lost", "dim")
        return 0

    with contextlib.redirect_stdout(sys.stderr):  # what tools print is no result
        return run_process(whole())


def _said(flags: Json) -> Json:
    """What was given, by the names of the settings."""
    given: Json = {
        "serve.host": flags["host"],
        "serve.port": flags["port"],
        "serve.ui": False if flags["no_ui"] else None,
        "serve.mcp": False if flags["no_mcp"] else None,
        "serve.behind_tls_proxy": True if flags["behind_tls_proxy"] else None,
    }
    for name in ("tls_cert", "tls_key"):
        given[f"serve.{name}"] = None if flags[name] is None else str(Path(flags[name]).absolute())
    return given


def _ready(settings: Settings, url: str, sign_in_url: str, recovered: int) -> Json:
    return {
        "type": "ready",
        "url": url,
        "sign_in_url": sign_in_url,
        "pid": os.getpid(),
        "store": str(settings.store_path or shown(settings)),
        "recovered": recovered,
    }


def _greet(current: Session, settings: Settings, ready: Json) -> None:
    current.result(f"everstep {__version__} serves {shown(settings)} at {ready['url']}")
    if ready["recovered"]:
        current.say(f"  {plural(ready['recovered'], 'interrupted task')} found, and taken up again")
    from everstep.doors.dashboard import is_built

    if settings.serve.ui and not is_built():
        current.say("  warning   the dashboard is not built here: python scripts/build_dashboard.py", "yellow")
    current.say(f"  sign in   {ready['sign_in_url']}")
    another = "everstep open" if settings.store_path else f"everstep --server {ready['url']} open"
    current.say(f"            (good once, for 10 minutes; another one: {another})", "dim")
    current.say(f"  programs  {ready['url']}/v1   Authorization: Bearer $(cat {shown_path(settings.token_path)})")
    current.say("  stop      Ctrl-C", "dim")


def shown_path(path: Path) -> str:
    """As somebody here would name it."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def stop_on_signals(stopping: asyncio.Event, current: Session) -> None:
    """The first stops it in order; the second at once, which loses nothing either."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            os._exit(EXIT_INTERRUPTED)
        current.say("\nstopping: calls under way may end; again to stop at once", "dim")
        stopping.set()

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop)
