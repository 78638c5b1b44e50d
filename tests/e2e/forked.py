"""Commands in processes of their own, forked from one that has imported the engine: half a second less for each.

    python -m tests.e2e.forked CHANNEL

What comes in over the channel is one command with its streams and a pipe for its exit code; whoever asked going away
ends it. Everything else is as if Python had been started for the command.
"""

import contextlib
import gc
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
REQUEST_BYTES = 1 << 17
STREAMS = 3


class Nursery:
    """The process that commands are forked from."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.forked", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # streams made for a pipe, as the commands' are
            stderr=subprocess.STDOUT,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()

    def run(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], text: str, timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run` with both streams captured."""
        with contextlib.ExitStack() as stack:
            given, out, err = (stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(3))
            given.write(text)
            given.seek(0)
            said, says = os.pipe()
            stack.callback(os.close, said)
            request = json.dumps({"words": [*words], "cwd": str(cwd), "env": dict(env)}).encode()
            socket.send_fds(self._channel, [request], [given.fileno(), out.fileno(), err.fileno(), says])
            os.close(says)
            code = _code(said, timeout)
            return subprocess.CompletedProcess([*words], code, _all(out), _all(err))


@cache
def nursery() -> Nursery:
    """One for each process of tests; it ends with it."""
    return Nursery()


def _code(said: int, timeout: float) -> int:
    """First the number of the process, then how it ended."""
    if not select.select([said], [], [], timeout)[0]:
        raise AssertionError("no process was forked")
    pid = int(os.read(said, 32))
    if not select.select([said], [], [], timeout)[0]:
        os.kill(pid, 9)
        raise AssertionError(f"the command did not end within {timeout:g} s")
    return int(os.read(said, 32))


def _all(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read()


def serve(channel: socket.socket) -> None:
    """Fork what is asked for. Returns in the process of a command, ready to carry it out."""
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, REQUEST_BYTES, STREAMS + 1)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            _attend(json.loads(request), descriptors)
            return
        for one in descriptors:
            os.close(one)
        while True:  # whoever attended a command has nothing to say to us
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(-1, os.WNOHANG)[0] > 0:
                    continue
            break


def _attend(asked: Mapping[str, object], descriptors: Sequence[int]) -> None:
    """Wait for the command and tell its end; in the command itself, make everything its own and return."""
    *streams, says = descriptors
    pid = os.fork()
    if pid:
        for one in streams:
            os.close(one)
        os.write(says, str(pid).encode())
        _, status = os.waitpid(pid, 0)
        os.write(says, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    os.close(says)
    for number, one in enumerate(streams):
        os.dup2(one, number)
        os.close(one)
    os.environ.clear()
    os.environ.update(asked["env"])  # type: ignore[call-overload]
    os.chdir(str(asked["cwd"]))
    sys.path[0] = str(Path.cwd())
    sys.argv = [str(ROOT / "src/everstep/__main__.py"), *asked["words"]]  # type: ignore[misc]


if __name__ == "__main__":
    from everstep.doors.cli.main import main

    import_module("everstep.facade.engine")
    serve(socket.socket(fileno=int(sys.argv[1])))
    main()
