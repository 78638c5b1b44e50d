"""Servers that peers need beside them, on ports of their own, each in a folder that goes with it."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

NOBODY: Final = 65534
END_S: Final = 20


def free_ports(count: int) -> list[int]:
    """Nobody has them at this moment."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


@dataclass(slots=True)
class Beside:
    """A server in a folder of its own, which can be killed and started again at the same address."""

    address: str
    command: list[str]
    folder: Path
    environ: dict[str, str]
    how: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, or begin again; it may not answer yet."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env={**os.environ, **self.environ},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                **self.how,
            )

    def kill(self) -> None:
        """`kill -9`."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As it likes to be stopped."""
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()


def restate_server(place: Path, folder: Path) -> Beside:
    """One node with its own log; its address is ingress, admin, and a port for whoever it calls."""
    ingress, admin, node, own = map(str, free_ports(4))
    program = next((place / "node_modules" / "@restatedev").glob("restate-server-*/bin/restate-server"))
    told = {
        "DO_NOT_TRACK": "1",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "error",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_BASE_DIR": str(folder),
    }
    where = ("--listen-mode", "tcp", "--bind-ip", "127.0.0.1", "--bind-port", node)
    command = [str(program), "--no-logo", "--node-name", "bench", *where]
    return Beside(f"{ingress},{admin},{own}", command, folder, told)


def temporal_server(place: Path, folder: Path) -> Beside:
    """The dev server on a file; its program is repackaged by a third party, so it does not run as root."""
    (port,) = free_ports(1)
    how: dict[str, Any] = {}
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        how = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    command = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    file = ["--db-filename", str(folder / "temporal.db")]
    program = str(place / "bin" / "temporal")
    return Beside(f"127.0.0.1:{port}", [program, *command, *file], folder, {"HOME": str(folder)}, how)


@contextmanager
def restate(place: Path, folder: Path) -> Iterator[str]:
    """While it is needed."""
    with _running(restate_server(place, folder)) as address:
        yield address


@contextmanager
def temporal(place: Path, folder: Path) -> Iterator[str]:
    """While it is needed."""
    with _running(temporal_server(place, folder)) as address:
        yield address


@contextmanager
def _running(server: Beside) -> Iterator[str]:
    server.start()
    try:
        yield server.address
    finally:
        server.stop()
