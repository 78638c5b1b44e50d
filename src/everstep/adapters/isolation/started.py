"""Launchers that wait for their order; and spare ones, so that the next call need not wait for an interpreter.

A spare has imported what every call in a process of its own needs, and nothing else: no code, argument, secret or
environment of any call. It serves exactly one, and all walls and limits stand before it is told which.
"""

import contextlib
import os
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from everstep.adapters.isolation import launcher
from everstep.adapters.isolation.program import PATH

SPARES: Final = 1
ROOT: Final = str(Path(__file__).parents[3])
IMPORTED: Final = {"PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}


def begun_in(module: str) -> str:
    """Python that calls `main` of one of our modules; nothing else of ours or of others is on its path before it."""
    return f"import sys; sys.path.append({ROOT!r}); from {module} import main, started; started(main)"


@dataclass(eq=False)
class Started:
    """A launcher that waits: its process, and our ends of its pipes."""

    process: "subprocess.Popen[bytes]"
    orders: int
    report: int
    answers: int | None = None
    answers_there: int | None = None
    """The number that the other end has in the child."""

    def give_up(self) -> None:
        """It is not needed: nobody has told it anything."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for descriptor in (self.orders, self.report, self.answers):
            if descriptor is not None:
                os.close(descriptor)


def start(*, stdin: bool, answers: bool = False, serving: bool = False) -> Started:
    """Start one; `serving`: one that is a Python function's process, which it becomes without another start."""
    pipes = [os.pipe() for _ in range(3 if answers else 2)]
    handed = [pipes[0][0], *(pipe[1] for pipe in pipes[1:])]
    process = subprocess.Popen(  # noqa: S603 -- a start takes a millisecond; a thread would cost more
        [
            sys.executable,
            *(("-P",) if serving else ("-I", "-S")),
            "-c",
            begun_in(launcher.__name__),
            *map(str, handed),
            *((launcher.SERVE,) if serving else ()),
        ],
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=handed,
        env={"PATH": PATH, **(IMPORTED if serving else {})},
        close_fds=True,
    )
    for descriptor in handed:
        os.close(descriptor)
    started = Started(process, pipes[0][1], pipes[1][0])
    if answers:
        started.answers, started.answers_there = pipes[2][0], pipes[2][1]
    return started


@dataclass(eq=False)
class Spares:
    """Launchers for calls to come."""

    most: int = SPARES
    _waiting: deque[Started] = field(default_factory=deque)

    def take(self) -> Started:
        """One that has waited, or a new one; another is started for whoever comes next."""
        taken: Started | None = None
        while self._waiting and taken is None:
            taken = self._waiting.popleft()
            if taken.process.poll() is not None:  # whoever started it is gone
                taken.give_up()
                taken = None
        taken = taken or start(stdin=True, answers=True, serving=True)
        while len(self._waiting) < self.most:
            self._waiting.append(start(stdin=True, answers=True, serving=True))
        return taken

    def __del__(self) -> None:
        """An engine that was given up closes nothing."""
        self.close()

    def close(self) -> None:
        """Nobody comes next."""
        while self._waiting:
            self._waiting.popleft().give_up()
