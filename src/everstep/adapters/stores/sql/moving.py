"""A whole store on its way into another one: table by table, in an order that can be written."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from everstep.domain.record import record

TABLES: Final = (
    "tasks", "events", "pauses", "rates", "quotas", "breakers", "credentials", "history", "signals", "listeners",
    "handles", "progress", "checkpoints", "begun", "spent_keys", "meta",
)  # fmt: skip
"""Each has a statement `copy_TABLE`, which reads it, and where it is written `fill_TABLE`, with the same columns."""
MOVED: Final = "moved_to"
"""In `meta` of a store that is no more: where it went."""
ARRIVING: Final = "arriving"
"""In `meta` of a store that is being filled: nobody opens it before it is whole."""
PAGE: Final = 1000


@record
class Cargo:
    """What is moved: rows of every table, and payloads by content."""

    rows: Callable[[str], Iterator[Sequence[Any]]]
    payloads: Callable[[], Iterator[tuple[str, bytes]]]
    head: str
    """One word for the chains of all journals."""
