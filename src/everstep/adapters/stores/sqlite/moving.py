"""A store that leaves a file, or comes into one: held by its lock meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from everstep.adapters.stores.chain import Seal, head_of
from everstep.adapters.stores.sql.migrations import refuse_first
from everstep.adapters.stores.sql.moving import ARRIVING, MOVED, TABLES, Cargo, not_empty, verify
from everstep.adapters.stores.sqlite.artifacts import Artifacts
from everstep.adapters.stores.sqlite.connect import connect, make_durable, one, read, translated
from everstep.adapters.stores.sqlite.migrate import make_file, migrate, migrate_down, migrations, version_of
from everstep.adapters.stores.sqlite.opening import Setup, backup_before, take
from everstep.adapters.stores.sqlite.readers import Reader
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.ids import Digest
from everstep.ports.store import Worker


class SqliteLeaving:
    """A closed store, and who holds it."""

    def __init__(self, connection: apsw.Connection, artifacts: Path) -> None:
        self._connection = connection
        self._artifacts = artifacts
        self.moved_to: str | None = one(connection, "get_meta", (MOVED,))

    @property
    def cargo(self) -> Cargo:
        """All that there is."""
        connection = self._connection
        heads = head_of(read(connection, "chain_heads"))
        return Cargo(rows=self._rows, payloads=self._payloads, head=heads, place=one(connection, "last_place"))

    def mark(self, place: str) -> None:
        """It has gone there; durable when this returns."""
        read(self._connection, "put_meta", (MOVED, place))

    def _rows(self, table: str) -> Iterator[Sequence[Any]]:
        return self._connection.execute(sql(f"copy_{table}"))

    def _payloads(self) -> Iterator[tuple[str, bytes]]:
        with suppress(FileNotFoundError):
            for path in sorted(self._artifacts.glob("[0-9a-f][0-9a-f]/*")):
                if not path.name.startswith("."):
                    yield f"sha256:{path.name}", path.read_bytes()


class SqliteArriving:
    """The place where a store goes, and who holds it."""

    def __init__(self, connection: apsw.Connection, path: Path, artifacts: Artifacts) -> None:
        self._connection = connection
        self._path = path
        self._artifacts = artifacts
        self.place = str(path)

    def fill(self, cargo: Cargo, seal: Seal) -> int:
        """Everything, or nothing; how many tasks. Raises Conflict if something is there already."""
        connection = self._connection
        for digest, raw in cargo.payloads():
            self._artifacts.keep([(Digest(digest), raw)])
        with connection:
            arriving = one(connection, "get_meta", (ARRIVING,)) is not None
            if not arriving and not one(connection, "is_empty"):
                raise not_empty(self.place)
            read(connection, "empty_store")
            read(connection, "put_meta", (ARRIVING, "yes"))
            for table in TABLES:
                connection.executemany(sql(f"fill_{table}"), map(_as_here, cargo.rows(table)))
            read(connection, "keep_place", {"place": cargo.place})
        reader = Reader(self._path)
        try:
            verify(reader, self._artifacts.read, seal, cargo)
            return sum(count for _, count in reader.rows("count_tasks"))
        finally:
            reader.close()

    def open_up(self) -> None:
        """From now on engines may open it."""
        read(self._connection, "forget_meta", (ARRIVING,))


@contextmanager
def leaving(setup: Setup, worker: Worker) -> Iterator[SqliteLeaving]:
    """Hold it closed; raises StoreLocked while somebody works on it."""
    with _held(setup, worker) as (connection, path):
        _bring_forward(connection, path, setup, worker)
        yield SqliteLeaving(connection, setup.artifacts)


@contextmanager
def arriving(setup: Setup, worker: Worker) -> Iterator[SqliteArriving]:
    """A file with our schema, empty or not; made if there is none."""
    with _held(setup, worker) as (connection, path):
        _bring_forward(connection, path, setup, worker)
        artifacts = Artifacts(setup.artifacts, setup.fault)
        try:
            yield SqliteArriving(connection, path, artifacts)
        finally:
            artifacts.close()


def lower(setup: Setup, worker: Worker) -> int:
    """One step of the schema back, for an older program; its number then. A copy is made first."""
    with _held(setup, worker) as (connection, path):
        version = version_of(path, migrations())
        refuse_first(version)
        backup_before(path, worker, setup)(version)
        migrate_down(connection, version - 1, known=migrations())
    return version - 1


@contextmanager
def _held(setup: Setup, worker: Worker) -> Iterator[tuple[apsw.Connection, Path]]:
    path, lock = take(setup, worker)
    try:
        with translated():
            make_file(path)
            connection = connect(path, write=True)
            try:
                make_durable(connection, setup.durability)
                yield connection, path
            finally:
                connection.close()
    finally:
        lock.release()


def _bring_forward(connection: apsw.Connection, path: Path, setup: Setup, worker: Worker) -> None:
    migrate(connection, worker.started_at, known=migrations(), backup=backup_before(path, worker, setup))


def _as_here(row: Sequence[Any]) -> tuple[Any, ...]:
    """A file has no yes and no, but 1 and 0."""
    return tuple(int(value) if isinstance(value, bool) else value for value in row)
