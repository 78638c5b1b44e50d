"""What a trial carries: a plan of steps in line. It says what to expect, and knows no engine."""

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from everstep.torture.ledger import Expected

HARMLESS: Final = ("pure", "idempotent", "verifiable")
"""Effects that a crash may repeat without asking, in turn."""
SILENT: Final = frozenset({"pure", "idempotent"})
"""Effects that silence may approve."""
MODULUS: Final = 2**31 - 1
WORKLOAD: Final = "workload.json"
PLAN: Final = "trial.plan.json"


@dataclass(frozen=True, slots=True)
class Workload:
    """W1: steps in line, each needing the one before; a share of them must never be repeated."""

    steps: int = 10
    once_share: float = 0.3
    seed: int = 0
    call_s: float = 0.01
    """How long a call lasts after its effect, so that a kill can land there."""
    pauses: int = 0
    """How often somebody asks for a pause meanwhile."""
    approvals: float = 0.0
    """Which share of the steps waits for approval."""
    silent: bool = False
    """Nobody approves what may be approved by silence."""
    fails: bool = False
    """The first call of a gated `once` step fails after it has acted; somebody orders a retry."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        return cls(**json.loads((folder / WORKLOAD).read_text(encoding="utf-8")))

    def write(self, folder: Path) -> None:
        (folder / WORKLOAD).write_text(json.dumps(asdict(self)), encoding="utf-8")
        (folder / PLAN).write_text(json.dumps(self.plan), encoding="utf-8")

    @property
    def effects(self) -> dict[str, str]:
        """Step id -> effect."""
        chance = random.Random(self.seed)  # noqa: S311 -- seeded, so that a trial can be repeated
        once = set(chance.sample(range(self.steps), round(self.steps * self.once_share)))
        return {f"s{n}": "once" if n in once else HARMLESS[n % len(HARMLESS)] for n in range(self.steps)}

    @property
    def gated(self) -> tuple[str, ...]:
        """Steps that wait for approval: spread over the plan."""
        wanted = round(self.steps * self.approvals)
        return tuple(f"s{n * self.steps // wanted}" for n in range(wanted))

    def _question(self, effect: str) -> dict[str, Any]:
        if self.silent and effect in SILENT:
            return {"title": "Go on?", "within": "100ms", "on_timeout": "approve"}
        return {"title": "Go on?"}

    @property
    def plan(self) -> dict[str, Any]:
        """The plan as JSON."""
        steps = []
        value = "${inputs.start}"
        for name, effect in self.effects.items():
            step: dict[str, Any] = {"id": name, "tool": f"trial.{effect}", "with": {"value": value}}
            if name in self.gated:
                step["approve"] = self._question(effect)
                step["on_error"] = "pause"
            steps.append(step)
            value = f"${{{name}.value}}"
        return {"name": "trial", "inputs": {"start": "integer"}, "steps": steps, "outputs": {"value": value}}

    @property
    def inputs(self) -> dict[str, Any]:
        return {"start": self.seed + 1}

    @property
    def expected(self) -> list[Expected]:
        """What the ledger waits for."""
        return [Expected(name, repeatable=effect != "once") for name, effect in self.effects.items()]

    @property
    def value(self) -> int:
        """The output of an undisturbed task."""
        value: int = self.inputs["start"]
        for _ in range(self.steps):
            value = after(value)
        return value


def after(value: int) -> int:
    """What every tool computes: a number that a lost, repeated or swapped step would change."""
    return (value * 48271 + 11) % MODULUS
