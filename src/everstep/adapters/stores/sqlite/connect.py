"""How connections are opened, and the one place where foreign errors become ours.

Foreign exceptions never leave this folder: one table, one context manager.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import apsw

from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.errors import StoreError, StoreFull, StoreRefused, Unavailable

Durability: TypeAlias = Literal["power", "process"]

APPLICATION_ID: Final = 0x45565354
SQLITE_MIN: Final = (3, 51, 3)
"""Older ones can corrupt a file when its WAL is reset."""
_SYNCHRONOUS: Final[dict[Durability, int]] = {"power": 2, "process": 1}

_TABLE: Final[tuple[tuple[type[Exception], type[StoreError], str], ...]] = (
    (apsw.FullError, StoreFull, "no space is left for the store"),
    (apsw.CorruptError, Unavailable, "the store's file is damaged"),
    (apsw.NotADBError, StoreRefused, "the file is no database"),
    (apsw.BusyError, Unavailable, "another process is writing to the store"),
    (apsw.LockedError, Unavailable, "another process is writing to the store"),
    (apsw.InterruptError, Unavailable, "the store took too long to answer"),
    (apsw.ReadOnlyError, Unavailable, "the store cannot be written"),
    (apsw.CantOpenError, Unavailable, "the store's file cannot be opened"),
    (apsw.IOError, Unavailable, "the store's disk fails"),
    (apsw.Error, Unavailable, "the store fails"),
)


@contextmanager
def translated() -> Iterator[None]:
    """Ours instead of SQLite's and the system's."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise translate(error) from error


def translate(error: Exception) -> StoreError:
    """What a foreign error means to the operator."""
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFull(f"no space is left for the store: {error}")
        return Unavailable(f"the store's disk fails: {error}")
    kind, text = next((kind, text) for foreign, kind, text in _TABLE if isinstance(error, foreign))
    return kind(f"{text}: {error}")


def connect(path: Path, *, write: bool) -> apsw.Connection:
    """A connection with the settings of the house. Readers can do nothing but read."""
    flags = apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags)
    read(connection, "set_writer" if write else "set_reader")
    return connection


def make_durable(connection: apsw.Connection, durability: Durability) -> None:
    """WAL and the profile's flushes, verified: never less than promised."""
    read(connection, "use_wal")
    read(connection, f"sync_{durability}")
    mode, synchronous = one(connection, "get_journal_mode"), one(connection, "get_synchronous")
    if mode != "wal" or synchronous != _SYNCHRONOUS[durability]:
        raise StoreRefused(
            f"the file system does not allow the durability '{durability}' (journal {mode}, synchronous {synchronous})",
            code="durability_not_met",
            what_to_do="keep the store on a local disk",
        )


def check_library() -> None:
    """Refuse a SQLite that can corrupt the file."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < SQLITE_MIN:
        found, least = (".".join(map(str, one)) for one in (version, SQLITE_MIN))
        raise StoreRefused(f"SQLite {found} is too old, {least} is needed", what_to_do="pip install --upgrade apsw")


def read(connection: apsw.Connection, name: str, values: Any = None) -> list[tuple[Any, ...]]:
    """All rows of a named statement. Rows hold what SQLite holds, so their types are the statement's business."""
    return list(connection.execute(sql(name), values))


def one(connection: apsw.Connection, name: str, values: Any = None) -> Any:
    """The first column of the only row; None if there is no row."""
    rows = read(connection, name, values)
    return rows[0][0] if rows else None


def sync_folder(folder: Path) -> None:
    """Make names in this folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
