"""The folder a demo lives in: a project like any other, so that its task can be looked at with every command."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

FOLDER: Final = ".everstep-demo"
WORLD: Final = "world.jsonl"
RIG: Final = "rig.json"
"""Where the parts of the world are, so that they come back to the same place."""
UNDER_WAY: Final = "under-way"
"""Holds the scenario's name from the first step to the last, so that a killed demo is known as one."""


class DemoFolder:
    """The project folder of one demo."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said = path / "said.txt"
        """What a command that nobody watches has to say, in case it fails."""

    def prepare(self, name: str, plan: Traversable, fill: Callable[[], None]) -> bool:
        """Make it, unless the same demo was cut short here; whether it was."""
        mark = self.path / UNDER_WAY
        cut_short = mark.exists() and mark.read_text(encoding="utf-8") == name
        if not cut_short:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True)
            (self.path / ".gitignore").write_text("*\n", encoding="utf-8")
            (self.path / plan.name).write_bytes(plan.read_bytes())
            fill()
            mark.write_text(name, encoding="utf-8")
        return cut_short

    def finish(self, *, keep: bool) -> None:
        """The demo came to its end."""
        (self.path / UNDER_WAY).unlink(missing_ok=True)
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def rig(self) -> dict[str, Any]:
        """The parts of the world, by name."""
        path = self.path / RIG
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def written(self) -> float:
        """When the store was last written to."""
        return max((path.stat().st_mtime for path in (self.path / ".everstep").glob("*.db*")), default=0.0)

    def world(self) -> Iterator[dict[str, Any]]:
        """What happened in the world, line by line; a line that is still being written does not count."""
        path = self.path / WORLD
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n"):
                    yield json.loads(line)

    def made(self) -> Counter[str]:
        """How often each step reached the world."""
        return Counter(line["step"] for line in self.world())

    def reached(self, step: str) -> bool:
        """Whether a step has reached the world."""
        return any(line["step"] == step for line in self.world())

    def find(self, key: str) -> dict[str, Any] | None:
        """What a call with this key left in the world: the answer to "did it happen?"."""
        return next((line for line in self.world() if line.get("key") == key), None)


def happened(world: Path, **what: object) -> None:
    """Tell the world: one line, whole or not at all, and on the disk. The line is the effect: no kill falls between."""
    file = os.open(world, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, f"{json.dumps(what)}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
