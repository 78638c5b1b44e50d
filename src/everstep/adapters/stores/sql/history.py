"""History in the database: gathered by statements over a range of the journal, kept in a transaction of its own.

Counting happens in the database, in a reader's thread: alike calls come out as one row.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from everstep.adapters.stores import gathering
from everstep.adapters.stores.gathering import call_key, pause_key, plan_key, queued_key, retry_key
from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.hold import Hold, Reader
from everstep.adapters.stores.sql.questions import meta
from everstep.domain.history import HistoryKey, HistoryRow, Kind, merged
from everstep.domain.record import record
from everstep.domain.regression import Timed
from everstep.ports.history import Gathered, HistoryFilter, Observed
from everstep.wire.history import decode_sketch, encode_sketch

GATHERED: Final = "gathered"
"""Up to which event: the number of its row."""
_LAST: Final = 2**62


@record
class KeepUnit:
    """Sketches that grow, and the cursor that says by what."""

    after: int
    upto: int
    rows: tuple[HistoryRow, ...]
    areas: tuple[str, ...] = ("history",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> bool:
        desk.in_turn("history", GATHERED)
        kept = next((int(value) for (value,) in desk.rows("get_meta", (GATHERED,))), 0)
        if kept != self.after:
            return False
        for row in self.rows:
            columns = _columns(row)
            found = next((decode_sketch(*one) for one in desk.rows("find_history", columns)), None)
            sketch = merged(found, row)
            desk.change("put_history", (*columns, encode_sketch(sketch), sketch.n, sketch.total_ms))
        desk.change("put_meta", (GATHERED, str(self.upto)))
        return True


@record
class ForgetUnit:
    """Hours that are too old."""

    before: int
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        desk.change("forget_history", {"before": self.before})


def _columns(row: HistoryRow) -> tuple[str | int, ...]:
    key = row.key
    return (row.bucket, key.owner, key.kind.value, key.name, key.outcome, key.size, key.plan, key.step)


class SqlHistory:
    """The verbs of `History` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def gather(self, sized: frozenset[str], limit: int) -> Gathered:
        """The next part of the journal."""
        return await self._hold().readers.read(lambda reader: _gather(reader, sized, limit))

    async def keep(self, gathered: Gathered, rows: Sequence[HistoryRow]) -> bool:
        """In its turn among the commits."""
        unit = KeepUnit(after=gathered.after, upto=gathered.upto, rows=tuple(rows))
        (answer,) = await self._hold().writes.submit((unit,))
        return bool(answer)

    async def rows(self, which: HistoryFilter) -> Sequence[HistoryRow]:
        """What is kept."""
        values = {
            "since": which.since,
            "until": _LAST if which.until is None else which.until,
            "owner": which.owner,
            "kind": None if which.kind is None else which.kind.value,
            "plan": which.plan,
        }
        return await self._hold().readers.read(
            lambda reader: [_row(*row) for row in reader.rows("list_history", values)]
        )

    async def recent(self, limit: int) -> Sequence[Timed]:
        """Calls that succeeded, of late."""
        return await self._hold().readers.read(
            lambda reader: [Timed(*row) for row in reader.rows("recent_calls", {"limit": limit})]
        )

    async def statuses(self, owner: str, plan: str | None) -> Mapping[str, int]:
        """How many of their tasks stand where."""
        values = {"owner": owner, "plan": plan}
        return await self._hold().readers.read(lambda reader: dict(reader.rows("count_tasks_of", values)))

    async def forget(self, before: int) -> None:
        """Hours before this one."""
        await self._hold().writes.submit((ForgetUnit(before=before),))


def _row(bucket: int, owner: str, kind: str, name: str, *rest: Any) -> HistoryRow:
    outcome, size, plan, step, *sketch = rest
    key = HistoryKey(owner, Kind(kind), name, outcome, size, plan, step)
    return HistoryRow(key=key, bucket=bucket, sketch=decode_sketch(*sketch))


def _gather(reader: Reader, sized: frozenset[str], limit: int) -> Gathered:
    after = int(meta(reader, GATHERED) or 0)
    ((upto,),) = reader.rows("gather_upto", {"after": after, "limit": limit})
    if upto <= after:
        return Gathered(after=after, upto=after, observed=())
    part = {"after": after, "upto": upto}
    return Gathered(after=after, upto=upto, observed=tuple(_observed(reader, part, sized)))


def _observed(reader: Reader, part: dict[str, int], sized: frozenset[str]) -> Iterator[Observed]:
    names = json.dumps(sorted(sized))
    for owner, plan, step, tool, kind, hour, ms, count in reader.rows("gather_calls", {**part, "sized": names}):
        yield Observed(call_key(owner, plan, step, tool=tool, type=kind), hour, ms, count)
    if sized:
        for owner, plan, step, tool, kind, hour, ms, body in reader.rows("gather_sized", {**part, "sized": names}):
            yield Observed(call_key(owner, plan, step, tool=tool, type=kind), hour, ms, input=gathering.input_of(body))
    for owner, plan, step, tool, hour, ms, body in reader.rows("gather_retries", part):
        arguments = gathering.input_of(body) if tool in sized else None
        yield Observed(retry_key(owner, plan, step, tool=tool), hour, ms, input=arguments)
    for owner, plan, kind, outcome, hour, ms, count in reader.rows("gather_tasks", part):
        key = queued_key(owner, plan) if kind == gathering.BEGUN else plan_key(owner, plan, kind, outcome)
        yield Observed(key, hour, ms, count)
    for owner, plan, step, kind, answer, hour, ms in reader.rows("gather_pauses", part):
        yield Observed(pause_key(owner, plan, step, type=kind, answer=answer), hour, ms)
