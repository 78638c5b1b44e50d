"""Research: a library that is slow, a brief, and a notice that must go up once."""

import json
from typing import Final

from everstep.demos.folder import DemoFolder
from everstep.demos.scenario import Ask, Bill, Json, Scenario, Words
from everstep.torture.ledger import Expected

_READS: Final = ("find", "read_1", "read_2", "read_3", "read_4", "read_5")


class Research:
    """A brief from five documents."""

    bill = Bill(
        name="research",
        plan="brief.plan.yaml",
        tools="everstep.demos.research.tools",
        killed_in="read_3",
        marked="post",
        effects=(*(Expected(step, repeatable=True) for step in _READS), Expected("post")),
        labels={"find": "search", "post": "notice on the board (never twice)"},
    )

    def prepare(self, folder: DemoFolder) -> str:  # noqa: ARG002 -- the library comes with the package
        """Only its tools are needed."""
        return ""

    def begin(self, folder: DemoFolder, pace: float) -> Words:  # noqa: ARG002 -- as above
        """The same plan and inputs: the same task."""
        return ["run", self.bill.plan, "-i", f"pace={pace}"]

    def answer(self, folder: DemoFolder, pause: Json, ask: Ask) -> tuple[str, Words]:  # noqa: ARG002 -- the world says enough
        """Is the notice there?"""
        found = folder.find(pause["reason"]["idempotencyKey"])
        answer = ["not_happened"] if found is None else ["happened", "--value", json.dumps(found["output"])]
        said = f"asked: {pause['title']} The notice board says: {answer[0]}"
        return said, ["answer", pause["id"], *answer, "--note", "seen on the board"]

    def after(self, code: int, ask: Ask) -> None:
        """That was it."""


SCENARIO: Final[Scenario] = Research()
