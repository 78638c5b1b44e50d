"""What a demo is made of: a plan in a folder, a world that effects arrive in, and a person who looks at that world."""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, Protocol, TypeAlias

from everstep.demos.folder import DemoFolder
from everstep.torture.ledger import Expected

Json: TypeAlias = dict[str, Any]
Words: TypeAlias = Sequence[str]
Ask: TypeAlias = Callable[..., str]
"""Gives a command, and returns what it said."""

SCENARIOS: Final = {
    "research": "everstep.demos.research.scenario",
    "release": "everstep.demos.release.scenario",
    "incident": "everstep.demos.incident.scenario",
}
SETTINGS: Final = """\
# Modules with the tools of this project.
tools = {tools}

[engine]
max_recoveries = 1000   # here it is not the task that kills its worker
"""


@dataclass(frozen=True, slots=True)
class Bill:
    """What stands on the poster."""

    name: str
    plan: str
    """The plan's file, in the scenario's own package."""
    killed_in: str
    """The step in the middle of which a calm performance is killed."""
    marked: str
    """The call that chaos kills once, and that must not be made twice unseen."""
    world: str
    """The module that builds its world, in a process of its own (`everstep.demos.rig`)."""
    effects: tuple[Expected, ...]
    """What the plan asks of the world, by step."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Steps as the ledger names them."""
    tools: tuple[str, ...] = ()
    """Modules with tools of its own."""


class Scenario(Protocol):
    """One demo."""

    bill: Bill

    def prepare(self, folder: DemoFolder) -> None:
        """Put into the folder what the plan works on."""

    def settings(self, parts: Mapping[str, int]) -> str:
        """What the settings of the project say besides its tools; `parts`: the ports of the world."""

    def begin(self, folder: DemoFolder) -> Words:
        """The command that carries the task; given again, it goes on."""

    def answer(self, folder: DemoFolder, pause: Json, ask: Ask) -> tuple[str, Words]:
        """What a person who looks at the world says to a question: in a sentence, and as a command."""

    def after(self, code: int, ask: Ask) -> tuple[str, Words] | None:
        """What follows when a task has ended so: in a sentence, and the next command; None: nothing, that was it."""


def scenario(name: str) -> Scenario:
    """Loaded when it is played."""
    found: Scenario = importlib.import_module(SCENARIOS[name]).SCENARIO
    return found


def prepare(chosen: Scenario, folder: DemoFolder) -> bool:
    """Make the folder of a demo, unless it was cut short there; whether it was."""
    bill, package = chosen.bill, type(chosen).__module__.rpartition(".")[0]
    return folder.prepare(bill.name, files(package) / bill.plan, lambda: chosen.prepare(folder))


def settle(chosen: Scenario, folder: DemoFolder) -> None:
    """The world stands: tell the project where."""
    text = SETTINGS.replace("{tools}", json.dumps(chosen.bill.tools)) + chosen.settings(folder.rig)
    (folder.path / "everstep.toml").write_text(text, encoding="utf-8")
