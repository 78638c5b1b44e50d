"""Engines as the harness sees them: a program that is killed and started again, and a server where it has one."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.peers.environments import prepare, python
from bench.peers.servers import Beside, restate_server, temporal_server
from everstep.torture.history import Logs, Violation
from everstep.torture.trial import Account, Process, account_in, born
from everstep.torture.workload import Workload

ROOT = Path(__file__).parents[2]
SERVER_EVERY = 3
"""So many lives there are to one of its server."""


@dataclass(frozen=True)
class Engine:
    """What is compared: which program in whose environment, and what is said of it."""

    name: str
    peer: str | None
    claim: str
    settings: str
    server: Callable[[Path, Path], Beside] | None = None
    words: tuple[str, ...] = ()
    server_dies: bool = False
    """A server that is made for development only is left alone: it would not be fair."""


ENGINES = (
    Engine("everstep", None, "an effect marked once is never repeated unasked", "SQLite, durability `power` (default)"),
    Engine("dbos", "dbos", "a step is tried at least once, and not again once it has completed",
           "PostgreSQL (flushed commits), one executor, recovery at launch"),
    Engine("langgraph", "langgraph", "a node that did not finish runs again",
           'PostgreSQL (flushed commits), `durability="sync"`'),
    Engine("temporal", "temporal", "an activity is tried at least once by default",
           "dev server on a file, not killed, `start_to_close_timeout` 2 s", temporal_server, ("at-least-once",)),
    Engine("temporal, at most once", "temporal", "an activity with `maximum_attempts=1` is tried at most once",
           "the same, `maximum_attempts=1` for effects that must not be repeated", temporal_server, ("at-most-once",)),
    Engine("restate", "restate", "a run block is tried until its result is journaled",
           "one node on disk, default settings, which is killed too", restate_server, server_dies=True),
)  # fmt: skip


class Peer:
    """An engine that somebody else made. `url`: a PostgreSQL, for those that need one."""

    def __init__(self, engine: Engine, url: str) -> None:
        assert engine.peer is not None
        self._engine = engine
        self._place = prepare(engine.peer)
        self._url = url
        self._folder = Path()
        self._server: Beside | None = None
        self._lives = 0

    def prepare(self, folder: Path, workload: Workload) -> None:
        self._folder = folder
        workload.write(folder)
        if self._engine.server is not None:
            beside = folder / "server"
            beside.mkdir()
            self._server = self._engine.server(self._place, beside)
            self._server.start()
        else:
            with psycopg.connect(self._url, autocommit=True) as connection:
                name = f"kill_{os.urandom(6).hex()}"
                connection.execute(f"CREATE DATABASE {name}".encode())
            self._url = f"{self._url.rpartition('/')[0]}/{name}"

    def start(self, environ: Mapping[str, str]) -> Process:
        self._lives += 1
        if self._server is not None and self._engine.server_dies and self._lives % SERVER_EVERY == 0:
            self._server.kill()
            self._server.start()
        where = self._url if self._server is None else self._server.address
        program = f"bench.kill.with_{self._engine.peer}"
        words = [str(python(self._place)), "-m", program, str(self._folder), where, *self._engine.words]
        return born(words, self._folder, {"PYTHONPATH": str(ROOT), **environ}, ROOT)

    def account(self) -> Account | None:
        return account_in(self._folder)

    def judge(self, _logs: Logs) -> Iterable[Violation]:
        return ()

    def close(self) -> None:
        """Its server goes."""
        if self._server is not None and self._server.process is not None:
            with suppress(OSError):
                self._server.stop()
