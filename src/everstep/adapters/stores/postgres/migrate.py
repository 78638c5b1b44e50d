"""Schema: numbered SQL files, each with a way back. Only `everstep db migrate` goes forward; an engine refuses.

A migration and its record are one transaction, and whoever migrates holds the lock of a row of `meta`, so that two at
once are one after the other. `min_schema` says which programs may still work beside newer ones.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import psycopg

from everstep.adapters.stores.postgres.connect import Connection, connect, read, translated
from everstep.adapters.stores.postgres.sql import sql
from everstep.adapters.stores.sql.migrations import Migration, migrations_of, refuse_first
from everstep.domain.errors import StoreLocked, StoreRefused
from everstep.domain.ids import Instant
from everstep.ports.fault import Fault, no_fault

_RACED: Final = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable, psycopg.errors.DuplicateObject)
"""Somebody else makes the same at the same time."""


def migrations() -> tuple[Migration, ...]:
    """All of them, in order, without a gap."""
    return migrations_of(__package__ or "")


def refuse_other(connection: Connection, known: Sequence[Migration]) -> int:
    """The schema's number; raises StoreRefused for one that this program cannot work with."""
    version = version_of(connection, known)
    if version < len(known):
        raise StoreRefused(
            "the database holds no store" if not version else f"the store has schema {version}, {len(known)} is needed",
            what_to_do="everstep db migrate",
        )
    ((least,),) = read(connection, "get_meta", ("min_schema",))
    if int(least) > len(known):
        raise StoreRefused(
            f"the store has schema {version}, this program knows {len(known)}; it was left untouched",
            what_to_do="use the newer program",
        )
    return version


def version_of(connection: Connection, known: Sequence[Migration]) -> int:
    """How many migrations were applied; raises StoreRefused if they are not those that this program has."""
    if read(connection, "has_store") == [(False,)]:
        return 0
    applied = read(connection, "list_migrations")
    for (number, name, checksum), mine in zip(applied, known, strict=False):
        if mine.checksum != checksum:
            raise StoreRefused(f"migration {number} ({name}) of the store is not the one this program has")
    return len(applied)


def migrate(connection: Connection, at: Instant, *, known: Sequence[Migration], fault: Fault = no_fault) -> int:
    """Forward to the newest schema; how many steps that took."""
    with suppress(*_RACED):
        read(connection, "make_meta")
    steps = 0
    while True:
        with connection.transaction():
            read(connection, "lock_meta")
            version = version_of(connection, known)
            if version >= len(known):
                return steps
            step = known[version]
            fault("migrate.apply.before")
            connection.execute(step.up.encode())
            connection.execute(sql("insert_migration"), (step.number, step.name, step.checksum, at))
            fault("migrate.apply.mid")
        fault("migrate.apply.after")
        steps += 1


def migrate_at(url: str, at: Instant) -> int:
    """The same, from an address."""
    with translated(), connect(url, answer_s=None) as connection:
        return migrate(connection, at, known=migrations())


def lower_at(url: str, silent_ms: int) -> int:
    """One step back, for an older program; its number then. Raises StoreLocked while somebody works on it."""
    with translated(), connect(url, answer_s=None) as connection:
        version = version_of(connection, migrations())
        refuse_first(version)
        hold_closed(connection, silent_ms)
        migrate_down(connection, version - 1, known=migrations())
    return version - 1


def hold_closed(connection: Connection, silent_ms: int) -> None:
    """Until its transaction ends nobody writes; raises StoreLocked if somebody would have."""
    read(connection, "close_store")
    working = [name for (name,) in read(connection, "list_living", (silent_ms,))]
    if working:
        raise StoreLocked(
            f"{len(working)} work on this store: {', '.join(working[:5])}",
            what_to_do="stop them; who was killed counts as alive for `engine.stale_after`",
        )


def migrate_down(connection: Connection, to: int, *, known: Sequence[Migration]) -> None:
    """Back to an older schema, one transaction per step."""
    while (version := version_of(connection, known)) > to:
        with connection.transaction():
            read(connection, "lock_meta")
            connection.execute(known[version - 1].down.encode())
            if version > 1:
                connection.execute(sql("delete_migration"), (version,))
