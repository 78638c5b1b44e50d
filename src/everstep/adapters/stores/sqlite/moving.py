"""A store on a file that goes elsewhere: read as a whole while it is held closed, then marked: nobody opens it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from everstep.adapters.stores.chain import head_of
from everstep.adapters.stores.sql.moving import MOVED, Cargo
from everstep.adapters.stores.sqlite.connect import connect, make_durable, read, translated
from everstep.adapters.stores.sqlite.migrate import migrate, migrations
from everstep.adapters.stores.sqlite.opening import Setup, backup_before, take
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.errors import Conflict
from everstep.ports.store import Worker


class Leaving:
    """A closed store, and who holds it."""

    def __init__(self, connection: apsw.Connection, artifacts: Path) -> None:
        self._connection = connection
        self._artifacts = artifacts
        self.moved_to = next((place for (place,) in read(connection, "get_meta", (MOVED,))), None)

    @property
    def cargo(self) -> Cargo:
        """All that there is."""
        return Cargo(rows=self._rows, payloads=self._payloads, head=head_of(read(self._connection, "chain_heads")))

    def mark(self, place: str) -> None:
        """It has gone there; durable when this returns."""
        if self.moved_to not in (None, place):
            raise Conflict(f"this store was moved to {self.moved_to} before")
        read(self._connection, "put_meta", (MOVED, place))

    def _rows(self, table: str) -> Iterator[Sequence[Any]]:
        return self._connection.execute(sql(f"copy_{table}"))

    def _payloads(self) -> Iterator[tuple[str, bytes]]:
        with suppress(FileNotFoundError):
            for path in sorted(self._artifacts.glob("[0-9a-f][0-9a-f]/*")):
                if not path.name.startswith("."):
                    yield f"sha256:{path.name}", path.read_bytes()


@contextmanager
def leaving(setup: Setup, worker: Worker) -> Iterator[Leaving]:
    """Hold it closed; raises StoreLocked while somebody works on it."""
    path, lock = take(setup, worker)
    try:
        with translated():
            connection = connect(path, write=True)
            try:
                make_durable(connection, setup.durability)
                migrate(connection, worker.started_at, known=migrations(), backup=backup_before(path, worker, setup))
                yield Leaving(connection, setup.artifacts)
            finally:
                connection.close()
    finally:
        lock.release()
