"""History port: what the journal says of times and ends, gathered once, kept as sketches.

The journal is the truth and says everything; a cursor says up to where it was gathered. So nothing is counted by the
walk, nothing is lost in a crash, and nothing is counted twice: `keep` moves the cursor in the transaction that keeps.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from everstep.domain.history import HistoryKey, HistoryRow, Kind
from everstep.domain.record import hot_record, record
from everstep.domain.regression import Timed
from everstep.domain.values import Sealed


@hot_record
class Observed:
    """So often, this took so long. Of tools whose calls differ in size each alone, with its arguments."""

    key: HistoryKey
    hour: int
    ms: int
    count: int = 1
    input: Sealed | None = None


@record
class Gathered:
    """What happened behind the cursor, and up to where."""

    after: int
    upto: int
    observed: tuple[Observed, ...]


@record
class HistoryFilter:
    """Which rows; None means any. Buckets from `since` on, standing rows only if asked for by `since` 0."""

    owner: str | None = None
    kind: Kind | None = None
    plan: str | None = None
    since: int = 1
    until: int | None = None
    """The last bucket."""


class History(Protocol):
    """The verbs."""

    async def gather(self, sized: frozenset[str], limit: int) -> Gathered:
        """Up to `limit` events behind the cursor; calls of `sized` tools one by one, with their arguments."""

    async def keep(self, gathered: Gathered, rows: Sequence[HistoryRow]) -> bool:
        """Merge the rows and move the cursor; False, and nothing kept, if somebody has moved it meanwhile."""

    async def rows(self, which: HistoryFilter) -> Sequence[HistoryRow]:
        """What is kept."""

    async def recent(self, limit: int) -> Sequence[Timed]:
        """Calls that succeeded among the last `limit` events, oldest first: what a regression is judged by."""

    async def statuses(self, owner: str, plan: str | None) -> Mapping[str, int]:
        """How many tasks of an owner, or of one of their plans, stand where."""

    async def forget(self, before: int) -> None:
        """Hours before this one."""
