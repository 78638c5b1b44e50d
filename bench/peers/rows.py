"""Who is measured, on which store, and how a cell of theirs is started."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from bench.peers import servers
from bench.peers.environments import prepare, python

ROOT: Final = Path(__file__).parents[2]
WITHIN_S: Final = 60
"""For one cell; then it is cut."""
PATIENCE_S: Final = WITHIN_S + 240
MARK: Final = "FIGURES "


@dataclass(frozen=True)
class Row:
    """One line of the table. `floors`: how many times as fast we must be, by cell; for `bare` its share."""

    name: str
    store: str
    module: str
    peer: str | None = None
    floors: dict[str, float] | None = field(default=None, compare=False)


ROWS: Final = (
    Row("bare", "sqlite", "bench.bare_writer", floors={"seq": 0.6, "100": 0.5}),
    Row("everstep", "sqlite", "bench.everstep_cells"),
    Row("dbos", "sqlite", "bench.peers.with_dbos", "dbos", {"seq": 4, "100": 40}),
    Row("langgraph", "sqlite", "bench.peers.with_langgraph", "langgraph", {"seq": 3, "100": 20}),
    Row("restate", "own", "bench.peers.with_restate", "restate", {"seq": 3, "100": 12}),
    Row("temporal", "sqlite dev", "bench.peers.with_temporal", "temporal", {"100": 100}),
    Row("prefect", "sqlite server", "bench.peers.with_prefect", "prefect", {"100": 100}),
    Row("bare", "postgresql", "bench.peers.bare_pg"),
    Row("everstep", "postgresql", "bench.peers.everstep_pg"),
    Row("dbos", "postgresql", "bench.peers.with_dbos", "dbos", {"100": 40}),
    Row("langgraph", "postgresql", "bench.peers.with_langgraph", "langgraph", {"100": 25}),
)


def measured(row: Row, cell: str, folder: Path, server: str) -> dict[str, Any]:
    """One cell, in a process and a store of its own; raises what keeps it from being measured."""
    interpreter = Path(sys.executable) if row.peer is None else python(prepare(row.peer))
    environ = {**os.environ, "BENCH_WITHIN_S": str(WITHIN_S), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with _store(row, folder, server) as where:
        if row.peer == "prefect":
            environ |= _prefect(folder)
        said = subprocess.run(
            [str(interpreter), "-m", row.module, cell, where],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    lines = [line for line in said.stdout.splitlines() if line.startswith(("{", MARK))]
    if said.returncode != 0 or not lines:
        raise RuntimeError(f"{row.name} on {row.store}: {said.stderr[-500:]}")
    figures: dict[str, Any] = json.loads(lines[-1].removeprefix(MARK))
    return figures


@contextmanager
def _store(row: Row, folder: Path, server: str) -> Iterator[str]:
    if row.store == "postgresql":
        with database(server) as url:
            yield url
    elif row.peer == "restate":
        with servers.restate(prepare("restate"), folder) as ports:
            yield ports
    elif row.peer == "temporal":
        with servers.temporal(prepare("temporal"), folder) as address:
            yield address
    elif row.peer in {"dbos", "langgraph"}:
        yield f"sqlite:///{folder / 'peer.db'}"
    else:
        yield str(folder)


@contextmanager
def database(server: str) -> Iterator[str]:
    """An empty one."""
    name = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _prefect(folder: Path) -> dict[str, str]:
    return {
        "PREFECT_HOME": str(folder),
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    }
