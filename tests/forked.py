"""Processes of ours for tests, which begin at once: forked from one that has imported the engine already."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from everstep.torture.nursery import nursery


class Forked(subprocess.Popen[Any]):
    """`subprocess.Popen([sys.executable, "-m", ...])`, in a session of its own; only its start is another."""

    def _execute_child(self, args: list[str], *how: Any) -> None:
        _, _, _, _, cwd, env, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_ = how
        assert args[:2] == [sys.executable, "-m"], "what is not ours is not forked"
        given = (p2cread, c2pwrite, errwrite)
        self._life = nursery().start(
            args[2],
            args[3:],
            cwd=Path(cwd or "."),
            env=os.environ if env is None else env,
            streams=[own if theirs == -1 else theirs for own, theirs in enumerate(given)],
        )
        self.pid = self._life.pid
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._life.poll()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            self.returncode = self._life.wait(timeout)
        return int(self.returncode)
