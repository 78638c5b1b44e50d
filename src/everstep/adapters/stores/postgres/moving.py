"""A store that leaves a database, or comes into one. Nobody else writes meanwhile: the table of marks is locked.

Whoever slept through its lease and wakes after the store has gone finds no mark of its own, and can write nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from everstep.adapters.stores.chain import Seal, head_of
from everstep.adapters.stores.postgres.connect import Connection, connect, place_of, read, translated
from everstep.adapters.stores.postgres.migrate import hold_closed, migrate, migrations, refuse_other
from everstep.adapters.stores.postgres.payloads import get_payload
from everstep.adapters.stores.postgres.readers import PgReader
from everstep.adapters.stores.postgres.sql import sql
from everstep.adapters.stores.sql.moving import ARRIVING, MOVED, TABLES, Cargo, not_empty, verify
from everstep.domain.ids import Instant

_TYPES: Final = {"listeners": {6: bool}}
"""Columns that are another kind of value here."""


class PgLeaving:
    """A closed store, inside the transaction that holds it."""

    def __init__(self, connection: Connection, at: Instant) -> None:
        self._connection = connection
        self._at = at
        self.moved_to = next((place for (place,) in read(connection, "get_meta", (MOVED,))), None)

    @property
    def cargo(self) -> Cargo:
        """All that there is."""
        ((place,),) = read(self._connection, "last_place")
        heads = head_of(read(self._connection, "chain_heads"))
        return Cargo(rows=self._rows, payloads=lambda: self._rows("payloads"), head=heads, place=place)

    def mark(self, place: str) -> None:
        """It has gone there; durable when this returns."""
        read(self._connection, "put_meta", (MOVED, place))
        read(self._connection, "leave", (self._at,))
        read(self._connection, "commit")

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """Some at a time."""
        with self._connection.cursor(name="cargo") as cursor:
            yield from cursor.execute(sql(f"copy_{table}"))


@contextmanager
def leaving(url: str, at: Instant, silent_ms: int) -> Iterator[PgLeaving]:
    """Hold it closed; raises StoreLocked while somebody works on it."""
    with translated(), connect(url, answer_s=None) as connection:
        refuse_other(connection, migrations())
        hold_closed(connection, silent_ms)
        yield PgLeaving(connection, at)


class PgArriving:
    """The place where a store goes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.place = place_of(url)

    def fill(self, cargo: Cargo, seal: Seal) -> int:
        """Everything, or nothing; how many tasks. Raises Conflict if something is there already."""
        with translated(), connect(self._url, answer_s=None) as connection, connection.transaction():
            arriving = bool(read(connection, "get_meta", (ARRIVING,)))
            if not arriving and read(connection, "is_empty") != [(True,)]:
                raise not_empty(self.place)
            read(connection, "empty_store")
            read(connection, "put_meta", (ARRIVING, "yes"))
            tasks = _fill_all(connection, cargo)
            read(connection, "go_on_counting", {"place": cargo.place})
        reader = PgReader(self._url)
        try:
            with translated():
                verify(reader, lambda digest: get_payload(reader, digest), seal, cargo)
        finally:
            reader.close()
        return tasks

    def open_up(self) -> None:
        """From now on engines may open it."""
        with translated(), connect(self._url) as connection:
            read(connection, "forget_meta", (ARRIVING,))


@contextmanager
def arriving(url: str, at: Instant) -> Iterator[PgArriving]:
    """A database with our schema, empty or not."""
    with translated(), connect(url, answer_s=None) as connection:
        migrate(connection, at, known=migrations())
    yield PgArriving(url)


def _fill_all(connection: Connection, cargo: Cargo) -> int:
    tasks = 0
    for table in TABLES:
        if table == "meta":
            for row in cargo.rows(table):
                read(connection, "put_meta", tuple(row))
            continue
        kinds = _TYPES.get(table, {})
        written = _fill(connection, table, (_as_here(row, kinds) for row in cargo.rows(table)))
        tasks = written if table == "tasks" else tasks
    _fill(connection, "payloads", cargo.payloads())
    return tasks


def _as_here(row: Sequence[Any], kinds: Mapping[int, type]) -> Sequence[Any]:
    return [kinds[at](value) if at in kinds else value for at, value in enumerate(row)] if kinds else row


def _fill(connection: Connection, table: str, rows: Iterable[Sequence[Any]]) -> int:
    written = 0
    with connection.cursor().copy(sql(f"fill_{table}")) as copy:
        for row in rows:
            copy.write_row(row)
            written += 1
    return written
