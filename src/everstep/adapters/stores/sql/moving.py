"""A whole store on its way into another one: table by table, in an order that can be written.

Every kind of store has both sides: one that is held closed while it is read, and one that is filled before it may be
opened.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from everstep.adapters.stores.chain import Seal, seal_with
from everstep.adapters.stores.sql.audit import check_journals, head
from everstep.adapters.stores.sql.hold import Reader
from everstep.domain.errors import Conflict, StoreRefused, Unavailable
from everstep.domain.record import record
from everstep.wire.event import Fetch

TABLES: Final = (
    "tasks", "events", "pauses", "rates", "quotas", "breakers", "credentials", "history", "signals", "listeners",
    "handles", "progress", "checkpoints", "begun", "spent_keys", "meta",
)  # fmt: skip
"""Each has a statement `copy_TABLE`, which reads it, and `fill_TABLE`, which writes the same columns."""
MOVED: Final = "moved_to"
"""In `meta` of a store that is no more: where it went."""
ARRIVING: Final = "arriving"
"""In `meta` of a store that is being filled: nobody opens it before it is whole."""


@record
class Cargo:
    """What is moved: rows of every table, and payloads by content."""

    rows: Callable[[str], Iterator[Sequence[Any]]]
    payloads: Callable[[], Iterator[tuple[str, bytes]]]
    head: str
    """One word for the chains of all journals."""
    place: int
    """The last place in the order of all commits that was given."""


class Leaving(Protocol):
    """A store that nobody else writes meanwhile."""

    @property
    def moved_to(self) -> str | None:
        """Where it went before."""

    @property
    def cargo(self) -> Cargo:
        """All that there is."""

    def mark(self, place: str) -> None:
        """It has gone there; durable when this returns."""


class Arriving(Protocol):
    """The place where a store goes."""

    @property
    def place(self) -> str:
        """Its name."""

    def fill(self, cargo: Cargo, seal: Seal) -> int:
        """Everything, or nothing, and looked at as a whole; how many tasks. Raises Conflict if it is not empty."""

    def open_up(self) -> None:
        """From now on engines may open it."""


def move(going: Leaving, coming: Arriving, audit_key: str) -> int:
    """How many tasks went. Filled and verified, then the source is marked, and only then the target may be opened."""
    if going.moved_to not in (None, coming.place):
        raise Conflict(f"this store was moved to {going.moved_to} before")
    tasks = coming.fill(going.cargo, seal_with(audit_key)) if going.moved_to is None else 0
    going.mark(coming.place)
    coming.open_up()
    return tasks


def verify(reader: Reader, fetch: Fetch, seal: Seal, cargo: Cargo) -> None:
    """By the fold of every journal, and by the word for all chains."""
    problems = check_journals(reader, fetch, seal)
    if problems or head(reader) != cargo.head:
        raise Unavailable(f"what arrived is not what left: {problems[:3] or 'another audit head'}")


def refuse_closed(moved_to: str | None, arriving: str | None) -> None:
    """A store that went elsewhere is opened there only; one that is on its way is not opened yet."""
    if moved_to is not None:
        raise StoreRefused(f"this store was moved to {moved_to}", what_to_do=f"use it there: --store {moved_to}")
    if arriving is not None:
        raise StoreRefused("another store is being moved here", what_to_do="wait, or run that `everstep db move` again")


def not_empty(place: str) -> Conflict:
    """The refusal of a target that holds something."""
    return Conflict(f"{place} holds tasks already", what_to_do="name an empty one")
