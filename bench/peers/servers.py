"""Servers that peers need beside them, on ports of their own, each in a folder that goes with it."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def restate(place: Path, folder: Path) -> Iterator[str]:
    """One node with its own log."""
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
    with _running([str(program), "--no-logo", "--node-name", "bench", *where], folder, told):
        yield f"{ingress},{admin},{own}"


@contextmanager
def temporal(place: Path, folder: Path) -> Iterator[str]:
    """The dev server on a file; its program is repackaged by a third party, so it does not run as root."""
    (port,) = free_ports(1)
    how: dict[str, Any] = {}
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        how = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    command = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    file = ["--db-filename", str(folder / "temporal.db")]
    with _running([str(place / "bin" / "temporal"), *command, *file], folder, {"HOME": str(folder)}, **how):
        yield f"127.0.0.1:{port}"


@contextmanager
def _running(command: list[str], folder: Path, environ: dict[str, str], **how: Any) -> Iterator[None]:  # noqa: ANN401 -- as Popen has it
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environ}, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **how
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
