"""Real processes for tests: start a carrier, read what it says, kill it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.e2e.carrier import MARKS
from tests.forked import Forked

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240


class World:
    """A folder with a store, a plan and the marks that tools leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "everstep.db"
        self.plan = folder / "p.plan.json"
        self._marks = folder / "marks"
        self._processes: list[subprocess.Popen[str]] = []

    def write_plan(self, steps: Sequence[Mapping[str, object]], *, name: str = "p") -> None:
        """The plan that carriers start; tasks have the keys `NAME-0`, `NAME-1`, …"""
        self.plan.write_text(json.dumps({"name": name, "steps": list(steps)}), encoding="utf-8")

    def marks(self) -> list[str]:
        """What tools have done in the world, in order."""
        return self._marks.read_text(encoding="utf-8").splitlines() if self._marks.exists() else []

    def until_marked(self, count: int) -> None:
        """Wait until tools have left so many marks: a task that was started may still wait for its place."""
        latest = time.monotonic() + PATIENCE_S
        while len(self.marks()) < count:
            assert time.monotonic() < latest, self.marks()[-3:]
            time.sleep(0.01)

    def carrier(
        self, command: str, *, count: int = 1, before: Sequence[str] = (), **environment: str
    ) -> "subprocess.Popen[str]":
        """A process that starts tasks (`start`) or only carries them (`carry`)."""
        words = [sys.executable, "-m", "tests.e2e.carrier", str(self.store), command, str(self.plan), str(count)]
        starts = subprocess.Popen if before else Forked
        process = starts(
            [*before, *words],
            cwd=ROOT,
            env={**os.environ, MARKS: str(self._marks), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Nothing outlives a test."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


def until(process: "subprocess.Popen[str]", text: str) -> list[str]:
    """Read its lines up to one that begins with `text`."""
    assert process.stdout is not None
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line.rstrip("\n"))
        if line.startswith(text):
            return seen
    assert process.stderr is not None
    raise AssertionError(f"it ended without saying {text!r}: {seen} {process.stderr.read()}")


def kill(process: "subprocess.Popen[str]") -> None:
    """As the power going out, for this process."""
    process.kill()
    process.communicate()
