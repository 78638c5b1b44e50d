"""What a store keeps beside the journals, each with verbs of its own. None of it is needed to know what a task is."""

from typing import Protocol

from everstep.ports.handles import Handles
from everstep.ports.history import History
from everstep.ports.keyring import Keyring
from everstep.ports.marks import Marks
from everstep.ports.news import News
from everstep.ports.signals import Signals


class Beside(Protocol):
    """The other books."""

    @property
    def keyring(self) -> Keyring:
        """Tokens, and what is made with them."""

    @property
    def history(self) -> History:
        """How long things took and how they ended."""

    @property
    def signals(self) -> Signals:
        """Who waits for what from outside, and what has come."""

    @property
    def news(self) -> News | None:
        """What other engines do to the same store; None: there are no others."""

    @property
    def marks(self) -> Marks:
        """How far tasks were said to be, and calls have come."""

    @property
    def handles(self) -> Handles:
        """What clients outside call their tasks."""
