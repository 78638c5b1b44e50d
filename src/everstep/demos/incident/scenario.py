"""Incident: a model proposes, a person allows, and the service is restarted once."""

import json
from collections.abc import Mapping
from typing import Final

from everstep.demos.folder import DemoFolder
from everstep.demos.scenario import Ask, Bill, Json, Scenario, Words
from everstep.torture.ledger import Expected

SETTINGS: Final = """
[breaker]
cool_down = "3s"

[policy]
networks = [{networks}]
"""


class Incident:
    """Retries, a breaker, a fallback, a question, an approval."""

    bill = Bill(
        name="incident",
        plan="incident.plan.yaml",
        tools=("everstep.demos.incident.tools",),
        killed_in="restart",
        marked="restart",
        effects=(Expected("restart"),),
        labels={"restart": "restart of the service (never twice)"},
        world="everstep.demos.incident.world",
    )

    def prepare(self, folder: DemoFolder) -> None:
        """Everything it needs is out there."""

    def settings(self, parts: Mapping[str, int]) -> str:
        """The two places that it looks at."""
        networks = ", ".join(f'"127.0.0.1/32:{parts[name]}"' for name in ("service", "backup"))
        return SETTINGS.replace("{networks}", networks)

    def begin(self, folder: DemoFolder) -> Words:
        """The same plan and inputs: the same task."""
        site, backup = (f"http://127.0.0.1:{folder.rig[name]}" for name in ("service", "backup"))
        return ["run", self.bill.plan, "-i", f"site={site}", "-i", f"backup={backup}"]

    def answer(self, folder: DemoFolder, pause: Json, ask: Ask) -> tuple[str, Words]:  # noqa: ARG002 -- the world says enough
        """The errors do not fall: restart it. Did it happen? The list of processes knows."""
        kind, title = pause["reason"]["type"], pause["title"]
        if kind == "inputRequired":
            choice = {"action": "restart", "because": "214 errors a minute, and they do not fall"}
            return f"\n{title} answered: restart", ["answer", pause["id"], "answer", "--value", json.dumps(choice)]
        if kind == "approvalRequired":
            return f"\n{title} ana approves", ["approve", pause["id"], "--note", "I have told the shop"]
        found = folder.find(pause["reason"]["idempotencyKey"])
        words = ["not_happened"]
        if found is not None:
            words = ["happened", "--value", json.dumps({"name": "checkout", **found["output"]})]
        said = f"\n{title} ana looks at the process: {words[0]}"
        return said, ["answer", pause["id"], *words, "--note", "looked at the process"]

    def after(self, code: int, ask: Ask) -> None:
        """That was it."""


SCENARIO: Final[Scenario] = Incident()
