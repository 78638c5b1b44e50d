"""Schema: numbered SQL files, each with a way back; and which files are not touched at all.

A migration and its record are one transaction, so a crash leaves the old schema or the new one, and the next start
goes on from there. `schema.sql` is the sum of the migrations, for reading.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import apsw

from everstep.adapters.stores.one_kind import KIND, refuse_other_kind
from everstep.adapters.stores.sql.migrations import Migration, migrations_of
from everstep.adapters.stores.sqlite.connect import APPLICATION_ID, connect, one, read, sync_folder
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.errors import StoreRefused
from everstep.domain.ids import Instant
from everstep.ports.fault import Fault, no_fault
from everstep.ports.store import Worker

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_APPLICATION_ID_AT: Final = 68


def migrations() -> tuple[Migration, ...]:
    """All of them, in order, without a gap."""
    return migrations_of(__package__ or "")


def refuse_foreign(path: Path) -> None:
    """Look at the file's first page without opening it as a database; raises StoreRefused."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    mark = int.from_bytes(header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4], "big")
    if not header.startswith(_MAGIC) or mark != APPLICATION_ID:
        raise StoreRefused(f"{path} is not a store of ours; it was left untouched", what_to_do="name another file")


def make_file(path: Path) -> bool:
    """A new, empty store, if there is none; whether there was none. Its name is durable when this returns."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    _roll_back(path)
    if path.stat().st_size > 0:
        return False
    connection = connect(path, write=True)
    try:
        read(connection, "set_application_id")
    finally:
        connection.close()
    sync_folder(path.parent)
    return True


def _roll_back(path: Path) -> None:
    """Whoever died while the file was new left its journal of the old kind behind; a reader cannot mend that.

    After a power cut it may be all that is left.
    """
    if Path(f"{path}-journal").exists():
        connection = connect(path, write=True)
        try:
            one(connection, "get_user_version")
        finally:
            connection.close()


def version_of(path: Path, known: Sequence[Migration]) -> int:
    """The schema's number, read without a write; raises StoreRefused for one that is newer than this program."""
    connection = connect(path, write=False)
    try:
        found: int = one(connection, "get_user_version")
        if found > len(known):
            raise StoreRefused(
                f"{path} has schema {found}, this program knows {len(known)}; it was left untouched",
                what_to_do="use the newer program, or restore the backup that it made",
            )
        applied = read(connection, "list_migrations") if found else []
    finally:
        connection.close()
    for number, name, checksum in applied:
        if known[number - 1].checksum != checksum:
            raise StoreRefused(f"migration {number} ({name}) of {path} is not the one this program has")
    return found


def migrate(
    connection: apsw.Connection,
    at: Instant,
    *,
    known: Sequence[Migration],
    backup: Callable[[int], None],
    fault: Fault = no_fault,
) -> int:
    """Forward to the newest schema; how many steps that took. A store with contents is copied first."""
    version: int = one(connection, "get_user_version")
    missing = known[version:]
    if version and missing:
        backup(version)
    for step in missing:
        fault("migrate.apply.before")
        _apply(connection, step.up, (sql("insert_migration"), (step.number, step.name, step.checksum, at)), fault)
        fault("migrate.apply.after")
    return len(missing)


def migrate_down(connection: apsw.Connection, to: int, *, known: Sequence[Migration], fault: Fault = no_fault) -> None:
    """Back to an older schema, one transaction per step."""
    version: int = one(connection, "get_user_version")
    for step in reversed(known[to:version]):
        if step.number > 1:
            _apply(connection, step.down, (sql("delete_migration"), (step.number,)), fault)
        else:
            _apply(connection, step.down, None, fault)


def _apply(
    connection: apsw.Connection, script: str, note: tuple[str, tuple[str | int, ...]] | None, fault: Fault
) -> None:
    with connection:
        list(connection.execute(script))
        if note is not None:
            connection.execute(*note)
        fault("migrate.apply.mid")


def keep_kind(connection: apsw.Connection, worker: Worker) -> None:
    """How tasks of this store are carried is said once; raises StoreRefused."""
    if worker.kind:
        read(connection, "keep_meta", (KIND, worker.kind))
        refuse_other_kind(one(connection, "get_meta", (KIND,)), worker)
