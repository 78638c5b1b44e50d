"""`everstep worker`: carries tasks, and answers nobody. As many as wanted, on as many hosts as wanted."""

import asyncio
import contextlib
import os
import sys
from typing import Any, Final

import click

from everstep.bootstrap import run_process
from everstep.doors.cli.connect import settings_of, shown
from everstep.doors.cli.modules import load_tools
from everstep.doors.cli.serve_command import stop_on_signals
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import plural
from everstep.facade.engine import Engine

SAID: Final = {
    "name": "engine.name",
    "tasks": "engine.tasks",
    "kind": "engine.kind",
    "address": "temporal.address",
    "namespace": "temporal.namespace",
}
LOOK_S: Final = 0.2
"""Between two looks whether anything is left to do."""


@click.command(
    cls=Verb,
    epilog="""
    everstep worker --store postgresql://db.example/tasks
    everstep worker --name blue --tasks 200
    everstep worker --once
    everstep worker --engine temporal --address temporal.example:7233
    """,
)
@click.option("--name", metavar="N", help="What it is called in lists [the name of the host].")
@click.option("--tasks", type=click.IntRange(1, 10_000), metavar="N", help="Tasks at work at the same time [64].")
@click.option(
    "--engine",
    "kind",
    type=click.Choice(["embedded", "temporal"]),
    help="Who carries tasks: this process, or a Temporal server [embedded].",
)
@click.option("--address", metavar="HOST:PORT", help="Where the Temporal server is [127.0.0.1:7233].")
@click.option("--namespace", metavar="NS", help="The namespace there [default].")
@click.option("--once", is_flag=True, help="Leave when nothing can be done any more.")
def worker(*, once: bool, **flags: Any) -> int:  # noqa: ANN401 -- click's own arguments
    """Carry every task of the store, together with whoever else does, until Ctrl-C or SIGTERM."""
    current = session()
    settings = settings_of(current, **{key: flags[flag] for flag, key in SAID.items()})
    if once and settings.engine.kind == "temporal":
        raise click.UsageError("--once does not go with --engine temporal: what is left to do is known there")
    load_tools(settings)

    async def whole() -> int:
        stopping = asyncio.Event()
        stop_on_signals(stopping, current)
        async with Engine(config=settings) as engine:
            _greet(current, shown(settings), engine)
            await (_until_idle(engine, stopping) if once else stopping.wait())
        if current.json:
            current.result_json({"type": "result", "ok": True, "exit_code": 0})
        else:
            current.say("stopped; nothing is lost", "dim")
        return 0

    with contextlib.redirect_stdout(sys.stderr):  # what tools print is no result
        return run_process(whole())


def _greet(current: Session, store: str, engine: Engine) -> None:
    said: dict[str, Any] = {"type": "ready", "pid": os.getpid(), "store": store, "recovered": engine.recovered}
    if current.json:
        current.result_json(said)
        return
    current.result(f"working on {store}")
    if engine.recovered:
        current.say(f"  {plural(engine.recovered, 'interrupted task')} found, and taken up again")
    current.say("  stop      Ctrl-C", "dim")


async def _until_idle(engine: Engine, stopping: asyncio.Event) -> None:
    """Nothing is walked, and nothing can be claimed, twice in a row."""
    quiet = 0
    while quiet < 2 and not stopping.is_set():
        quiet = quiet + 1 if await engine.desk.idle() else 0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), LOOK_S)
