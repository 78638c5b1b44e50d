"""Lives that begin quickly: processes forked from one that has imported the engine already.

    python -m everstep.torture.nursery CHANNEL

Who is killed a thousand times spends most of its lives importing, where nothing can go wrong. So a process that has
done that waits at a channel; what comes in is a program with its streams, and a pipe on which its end is told. All else
is as if Python had been started for it. Whoever asked going away ends it.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

REQUEST_BYTES: Final = 1 << 17
STREAMS: Final = 3
WORD: Final = 12
"""Bytes of a number that is told: of fixed length, since two of them may be read late and together."""
IMPORTED: Final = ("everstep.facade.engine", "everstep.torture.world", "everstep.doors.cli.main")


class Forked:
    """One of its processes, as `subprocess.Popen` shows it; the first of a session of its own."""

    def __init__(self, told: int) -> None:
        self._told = told
        self.pid = int(os.read(told, WORD))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it lives."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended; raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = int(os.read(self._told, WORD))
            os.close(self._told)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """To this one, not to its group."""
        if self.poll() is None:
            os.kill(self.pid, sig)


class Nursery:
    """The process that others are forked from."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.run(  # noqa: S603 -- ourselves
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # so that its streams are made for no terminal, as those of the others are
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                check=True,
            )
        atexit.register(self._channel.close)

    def start(
        self, module: str, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> Forked:
        """`python -m MODULE WORDS` with these three streams."""
        told, tells = os.pipe()
        asked = {"module": module, "words": [*words], "cwd": str(cwd), "env": dict(env)}
        socket.send_fds(self._channel, [json.dumps(asked).encode()], [*streams, tells])
        os.close(tells)
        return Forked(told)


@cache
def nursery() -> Nursery:
    """One for this process; it ends with it."""
    return Nursery()


def serve(channel: socket.socket) -> str:
    """Fork what is asked for. Returns only in a process that was forked: the module it is to be."""
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(channel, REQUEST_BYTES, STREAMS + 1)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            return _attend(json.loads(request), descriptors)
        for one in descriptors:
            os.close(one)
        with contextlib.suppress(ChildProcessError):  # whoever has attended a process has nothing to say to us
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _attend(asked: Mapping[str, Any], descriptors: Sequence[int]) -> str:
    """Wait for a process and tell its end; in that process itself, make everything its own and return."""
    *streams, tells = descriptors
    pid = os.fork()
    if pid:
        for one in streams:
            os.close(one)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is meant for the others
        os.write(tells, b"%12d" % pid)
        _, status = os.waitpid(pid, 0)
        os.write(tells, b"%12d" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(tells)
    os.setsid()
    for number, one in enumerate(streams):
        os.dup2(one, number)
        os.close(one)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[:1] = [asked["cwd"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.argv = [asked["module"], *asked["words"]]
    return str(asked["module"])


if __name__ == "__main__":
    if os.fork():  # nobody's child: whoever looks at what it has started itself does not find us there
        os._exit(0)
    for name in IMPORTED:
        import_module(name)
    runpy.run_module(serve(socket.socket(fileno=int(sys.argv[1]))), run_name="__main__", alter_sys=True)
