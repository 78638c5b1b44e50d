"""A store that comes from elsewhere: filled in one transaction, looked at as a whole, and opened to others last."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from everstep.adapters.stores.chain import Seal
from everstep.adapters.stores.postgres.connect import Connection, connect, place_of, read, translated
from everstep.adapters.stores.postgres.migrate import migrate, migrations
from everstep.adapters.stores.postgres.payloads import get_payload
from everstep.adapters.stores.postgres.readers import PgReader
from everstep.adapters.stores.postgres.sql import sql
from everstep.adapters.stores.sql.audit import check_journals, head
from everstep.adapters.stores.sql.moving import ARRIVING, TABLES, Cargo
from everstep.domain.errors import Conflict, Unavailable
from everstep.domain.ids import Instant

_TYPES: Final = {"listeners": {6: bool}}
"""Columns that are another kind of value here."""


class Arriving:
    """The place where a store goes."""

    def __init__(self, url: str, at: Instant) -> None:
        self._url = url
        self.place = place_of(url)
        with translated(), connect(url) as connection:
            migrate(connection, at, known=migrations())

    def fill(self, cargo: Cargo, seal: Seal) -> int:
        """Everything, or nothing; how many tasks. Raises Conflict if something is there already."""
        with translated(), connect(self._url) as connection, connection.transaction():
            arriving = bool(read(connection, "get_meta", (ARRIVING,)))
            if not arriving and read(connection, "is_empty") != [(True,)]:
                raise Conflict(f"{self.place} holds tasks already", what_to_do="name an empty database")
            read(connection, "empty_store")
            read(connection, "put_meta", (ARRIVING, "yes"))
            tasks = _fill_all(connection, cargo)
            read(connection, "go_on_counting")
        self._verify(cargo, seal)
        return tasks

    def open_up(self) -> None:
        """From now on engines may open it."""
        with translated(), connect(self._url) as connection:
            read(connection, "forget_meta", (ARRIVING,))

    def _verify(self, cargo: Cargo, seal: Seal) -> None:
        """By the fold of every journal, and by the word for all chains."""
        reader = PgReader(self._url)
        try:
            with translated():
                problems = check_journals(reader, lambda digest: get_payload(reader, digest), seal)
                if problems or head(reader) != cargo.head:
                    raise Unavailable(f"what arrived is not what left: {problems[:3] or 'another audit head'}")
        finally:
            reader.close()


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
