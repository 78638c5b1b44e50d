"""The store that an address names: a file, or a database. Never one instead of the other."""

import os
import socket
import time
from pathlib import Path
from types import ModuleType
from typing import cast

from everstep.adapters.extras import extra_part
from everstep.adapters.stores.sqlite.connect import Durability, translated
from everstep.adapters.stores.sqlite.keeping import backup
from everstep.adapters.stores.sqlite.moving import leaving
from everstep.adapters.stores.sqlite.opening import Setup
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.errors import Validation
from everstep.domain.ids import Instant, WorkerId
from everstep.ports.clock import Clock
from everstep.ports.fault import Fault, no_fault
from everstep.ports.store import Store, Worker
from everstep.settings import Settings
from everstep.settings.place import DATABASES, scheme_of


def store_of(settings: Settings, clock: Clock, fault: Fault) -> Store:
    """Not opened yet."""
    if settings.store_path is not None:
        return SqliteStore(
            settings.store_path,
            artifacts=settings.artifacts,
            durability=cast("Durability", settings.durability),
            clock=clock,
            fault=fault,
            audit_key=settings.audit_key,
        )
    made = _postgres("everstep.adapters.stores.postgres.store").PgStore(
        settings.store,
        durability=settings.durability,
        clock=clock,
        fault=fault,
        audit_key=settings.audit_key,
        listen_url=settings.engine.listen_dsn,
        idle_ms=settings.engine.stale_after_ms // 2,
    )
    return cast("Store", made)


def migrate_store(settings: Settings) -> int:
    """The schema of a database, forward to this program's; how many steps. Blocking."""
    assert settings.store_path is None, "a file is migrated by opening it"
    migrating = _postgres("everstep.adapters.stores.postgres.migrate")
    return cast("int", migrating.migrate_at(settings.store, _now()))


def copy_store(settings: Settings, target: Path) -> None:
    """A copy of a store on a file, whoever holds it. Blocking. What a database holds, it copies in better ways."""
    if settings.store_path is None:
        raise Validation(
            "a copy of a PostgreSQL store is made by PostgreSQL",
            what_to_do="pg_dump, or the backups of whoever runs the database: docs/guide/deployment.md",
        )
    with translated():
        backup(settings.store_path, target, _now(), artifacts=settings.artifacts)


def move_store(settings: Settings, target: str) -> int:
    """This store into an empty database, tasks in flight included; how many tasks. Blocking, and it may be done again.

    Filled and verified, then the source is marked: nobody opens it again; only then the target may be opened.
    """
    if settings.store_path is None or scheme_of(target) not in DATABASES:
        raise Validation("a store on a file can be moved into a PostgreSQL, nothing else", what_to_do="postgresql://…")
    source = Setup(
        path=settings.store_path,
        artifacts=settings.artifacts,
        durability=cast("Durability", settings.durability),
        allow_fuse=False,
        fault=no_fault,
        audit_key=settings.audit_key,
    )
    with leaving(source, _mover()) as going:
        arriving = _postgres("everstep.adapters.stores.postgres.moving").Arriving(target, _now())
        tasks = 0 if going.moved_to == arriving.place else arriving.fill(going.cargo, source.seal)
        going.mark(arriving.place)
        arriving.open_up()
    return cast("int", tasks)


def _postgres(module: str) -> ModuleType:
    """A part of the adapter, which needs a driver that not everybody has; raises SettingsError."""
    return cast("ModuleType", extra_part(module, "postgres", "the store is a PostgreSQL"))


def _mover() -> Worker:
    """Who holds a store while it is moved."""
    from importlib.metadata import version

    host, now = socket.gethostname(), _now()
    return Worker(
        id=WorkerId("w_mover"),
        name=host,
        host=host,
        pid=os.getpid(),
        version=version("everstep"),
        started_at=now,
        heartbeat_at=now,
    )


def _now() -> Instant:
    return Instant(time.time_ns() // 1_000_000)
