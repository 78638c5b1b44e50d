"""The store that an address names: a file, or a database. Never one instead of the other."""

import time
from pathlib import Path
from types import ModuleType
from typing import cast

from everstep.adapters.extras import extra_part
from everstep.adapters.stores.sqlite.connect import Durability, translated
from everstep.adapters.stores.sqlite.keeping import backup
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.errors import Validation
from everstep.domain.ids import Instant
from everstep.ports.clock import Clock
from everstep.ports.fault import Fault
from everstep.ports.store import Store
from everstep.settings import Settings


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
            allow_fuse=settings.engine.allow_fuse,
        )
    made = postgres_part("everstep.adapters.stores.postgres.store").PgStore(
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
    migrating = postgres_part("everstep.adapters.stores.postgres.migrate")
    return cast("int", migrating.migrate_at(settings.store, now()))


def copy_store(settings: Settings, target: Path) -> None:
    """A copy of a store on a file, whoever holds it. Blocking. What a database holds, it copies in better ways."""
    if settings.store_path is None:
        raise Validation(
            "a copy of a PostgreSQL store is made by PostgreSQL",
            what_to_do="pg_dump, or the backups of whoever runs the database: docs/guide/deployment.md",
        )
    with translated():
        backup(settings.store_path, target, now(), artifacts=settings.artifacts)


def postgres_part(module: str) -> ModuleType:
    """A part of the adapter, which needs a driver that not everybody has; raises SettingsError."""
    return cast("ModuleType", extra_part(module, "postgres", "the store is a PostgreSQL"))


def now() -> Instant:
    """By the clock of this host."""
    return Instant(time.time_ns() // 1_000_000)
