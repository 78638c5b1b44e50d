"""From a path to a connection that may write: lock, look, migrate, register.

Nothing is touched before the lock is held, and what is refused is left as it was. Blocking: called from a thread.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import apsw

from everstep.adapters.stores.chain import Seal, seal_with
from everstep.adapters.stores.sqlite import keeping
from everstep.adapters.stores.sqlite.artifacts import make_folder
from everstep.adapters.stores.sqlite.connect import (
    Durability,
    check_library,
    connect,
    make_durable,
    one,
    read,
    translated,
)
from everstep.adapters.stores.sqlite.lock import Lock, resolve
from everstep.adapters.stores.sqlite.migrate import (
    keep_kind,
    make_file,
    migrate,
    migrations,
    refuse_foreign,
    version_of,
)
from everstep.domain.ids import Instant
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.ports.fault import Fault
from everstep.ports.store import Worker
from everstep.wire.times import to_text

MOVED_MS: Final = 30_000
"""A store whose lock is another file than last time: its holder is dead when it has been silent for this long."""
FORGET_MS: Final = 7 * 24 * 3600 * 1000
_EVER: Final = 2**62


@record
class Setup:
    """What a store is told once."""

    path: Path
    artifacts: Path
    durability: Durability
    allow_fuse: bool
    fault: Fault
    audit_key: str = ""

    @property
    def seal(self) -> Seal:
        """How lines of journals are linked."""
        return seal_with(self.audit_key)


def take(setup: Setup, worker: Worker) -> tuple[Path, Lock]:
    """The real path and its lock; raises StoreRefused or StoreLocked."""
    check_library()
    with translated():
        path = resolve(setup.path, allow_fuse=setup.allow_fuse)
        refuse_foreign(path)
        make_folder_of(path)
        lock = Lock(path)
        lock.acquire(holder(worker))
    return path, lock


def make_folder_of(path: Path) -> None:
    """Where the store lives; version control is told to look away."""
    if not path.parent.exists():
        make_folder(path.parent)
        (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")


def holder(worker: Worker, url: str | None = None, socket: str | None = None) -> JsonObject:
    """What the lock file says."""
    return {
        "pid": worker.pid,
        "host": worker.host,
        "incarnation": worker.id,
        "started_at": to_text(worker.started_at),
        "command": " ".join(sys.argv),
        "url": url,
        "socket": socket,
        "version": worker.version,
    }


def alive_until(path: Path, lock: Lock) -> Instant:
    """Until when somebody may hold this store through another lock file; 0 if nobody can."""
    with translated():
        if make_file(path) or version_of(path, migrations()) == 0:
            return Instant(0)
        connection = connect(path, write=False)
        try:
            if one(connection, "get_meta", (keeping.LOCK,)) in (None, lock.identity):
                return Instant(0)
            return Instant((one(connection, "last_beat") or 0) + MOVED_MS)
        finally:
            connection.close()


def prepare(path: Path, lock: Lock, setup: Setup, worker: Worker) -> apsw.Connection:
    """The one connection that writes: durable, migrated, with this worker registered and all others fenced."""
    with translated():
        connection = connect(path, write=True)
        try:
            make_durable(connection, setup.durability)
            migrate(
                connection,
                worker.started_at,
                known=migrations(),
                backup=backup_before(path, worker, setup),
                fault=setup.fault,
            )
            keeping.refuse_moved(connection)
            with connection:
                _register(connection, worker, lock)
        except BaseException:
            connection.close()
            raise
    return connection


def backup_before(path: Path, worker: Worker, setup: Setup) -> Callable[[int], None]:
    """What is done before a schema changes."""
    return partial(_backup, path, worker.started_at, setup.fault)


def _backup(path: Path, at: Instant, fault: Fault, version: int) -> None:
    folder = path.parent / "backups"
    make_folder(folder)
    keeping.backup(path, folder / f"{path.stem}-schema{version}-{at}{path.suffix}", at, fault)


def _register(connection: apsw.Connection, worker: Worker, lock: Lock) -> None:
    """The lock proves that every other incarnation is dead, however young its last beat is."""
    at = worker.started_at
    keep_kind(connection, worker)
    read(connection, "fence_workers", {"at": at, "me": worker.id, "before": _EVER})
    read(connection, "forget_workers", {"before": at - FORGET_MS})
    columns = (worker.id, worker.name, worker.host, worker.pid, worker.version, at, worker.heartbeat_at)
    read(connection, "insert_worker", columns)
    read(connection, "put_meta", (keeping.LOCK, lock.identity))
