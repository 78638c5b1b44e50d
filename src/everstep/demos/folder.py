"""The folder a demo lives in: a project like any other, so that its task can be looked at with every command."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

FOLDER: Final = ".everstep-demo"
PLAN: Final = "brief.plan.yaml"
WORLD: Final = "world.jsonl"
BOARD: Final = "board.jsonl"
TOOLS: Final = "everstep.demos.research.tools"
SETTINGS: Final = f"""\
# Modules with the tools of this project.
tools = ["{TOOLS}"]

[engine]
max_recoveries = 1000   # here it is not the task that kills its worker
"""
UNDER_WAY: Final = "under-way"
"""Stands there from the first step to the last, so that a killed demo is known as one."""


class DemoFolder:
    """The project folder of one demo."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said = path / "said.txt"
        """What a command that nobody watches has to say, in case it fails."""

    def prepare(self) -> bool:
        """Make it, unless an earlier demo was cut short here; whether one was."""
        cut_short = (self.path / UNDER_WAY).exists()
        if not cut_short:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / ".gitignore").write_text("*\n", encoding="utf-8")
            with as_file(files("everstep.demos.research")) as research:
                shutil.copyfile(research / PLAN, self.path / PLAN)
            (self.path / "everstep.toml").write_text(SETTINGS, encoding="utf-8")
            for name in (WORLD, BOARD):
                (self.path / name).unlink(missing_ok=True)
            (self.path / UNDER_WAY).touch()
        return cut_short

    def finish(self, *, keep: bool) -> None:
        """The demo came to its end."""
        (self.path / UNDER_WAY).unlink(missing_ok=True)
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def world(self) -> Iterator[dict[str, Any]]:
        """What happened in the world, line by line; a line that is still being written does not count."""
        for path in (self.path / WORLD, self.path / BOARD):
            if path.exists():
                for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                    if line.endswith("\n"):
                        yield json.loads(line)

    def made(self, task: str) -> Counter[str]:
        """How often each step of a task reached the world."""
        return Counter(line["step"] for line in self.world() if line["task"] == task)

    def reached(self, step: str) -> bool:
        """Whether a step has reached the world."""
        return any(line["step"] == step for line in self.world())

    def find(self, key: str) -> dict[str, Any] | None:
        """What a call with this key left in the world: the answer to "did it happen?"."""
        return next((line for line in self.world() if line["key"] == key), None)
