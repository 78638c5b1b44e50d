"""What a siege is given: a plan to be carried, how it is answered, and where it is to die."""

import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from everstep.authoring.plan import Plan
from everstep.bootstrap import plugin
from everstep.facade.runnable import Runnable
from everstep.torture.world import Appender

AREAS: Final = frozenset({"create", "claim", "intent", "outcome", "command", "call", "sweep", "timer", "undo", "fork"})
"""Boundaries that belong to the plan, and come in the same order each time; not those of clocks."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be carried, and how it is answered."""

    plan: str
    """A file, or `module:attribute`."""
    inputs: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    """By step: the answer to what it asks, or what its stand-in returns."""
    real: bool = False
    config: str | None = None

    def load(self) -> Runnable:
        """The plan itself."""
        if ":" in self.plan and not Path(self.plan).exists():
            found: Runnable = plugin(self.plan).content
            return found
        return Plan.load(self.plan)


class Passages:
    """The engine's named points: written down as they are passed, and deadly at one of them."""

    def __init__(self, path: Path, deadly: str | None) -> None:
        self._lines = Appender(path)
        self._deadly = deadly
        self._passed: Counter[str] = Counter()

    def __call__(self, point: str) -> None:
        if point.partition(".")[0] not in AREAS:
            return
        self._passed[point] += 1
        name = f"{point}:{self._passed[point]}"
        self._lines.write(point=name)
        if name == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
