"""Research: six pages, three of which behave, a brief, and a mail that must go out once."""

from collections.abc import Mapping
from typing import Final

from everstep.demos.folder import DemoFolder
from everstep.demos.research.world import MAILDIR
from everstep.demos.scenario import Ask, Bill, Json, Scenario, Words
from everstep.torture.ledger import Expected

SETTINGS: Final = f"""
[search.providers]
demo = "http://127.0.0.1:{{site}}/search"

[mail]
server = "smtp://127.0.0.1:{{mail}}"
sender = "agent@example.test"
lookup = "{MAILDIR}"     # where sent mail arrives: a lost answer is looked up there

[policy]
networks = ["127.0.0.1/32:{{site}}"]
"""
SUBJECT: Final = "Your brief on solar storage"


class Research:
    """Search, read, sum up, save, ask, send."""

    bill = Bill(
        name="research",
        plan="brief.plan.yaml",
        killed_in="pages",
        marked="send",
        effects=(
            Expected("hits", repeatable=True),
            Expected("pages", repeatable=True, times=4),
            Expected("send"),
        ),
        labels={"hits": "search", "pages": "pages read", "send": "mail to ana@example.test (never twice)"},
        world="everstep.demos.research.world",
    )

    def prepare(self, folder: DemoFolder) -> None:
        """Everything it needs is out there."""

    def settings(self, parts: Mapping[str, int]) -> str:
        """A search engine and a mail server."""
        return SETTINGS.format(**parts)

    def begin(self, folder: DemoFolder) -> Words:  # noqa: ARG002 -- nothing depends on it
        """The same plan and inputs: the same task."""
        return ["run", self.bill.plan]

    def answer(self, folder: DemoFolder, pause: Json, ask: Ask) -> tuple[str, Words]:  # noqa: ARG002 -- she reads, and likes it
        """Ana wants another subject."""
        said = f"\n{pause['title']} ana changes the subject, and approves"
        return said, ["approve", pause["id"], "--set", f"subject={SUBJECT}", "--note", "a better subject"]

    def after(self, code: int, ask: Ask) -> None:
        """That was it."""


SCENARIO: Final[Scenario] = Research()
