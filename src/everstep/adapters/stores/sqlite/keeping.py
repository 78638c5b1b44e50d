"""Keeping a store: is it sound, and a copy of it."""

from pathlib import Path
from typing import Final

import apsw

from everstep.adapters.stores.chain import Seal
from everstep.adapters.stores.sql.audit import CHECK_MAX_S, check_journals
from everstep.adapters.stores.sql.hold import Reader
from everstep.adapters.stores.sql.housekeeping import COPIED
from everstep.adapters.stores.sql.moving import ARRIVING, MOVED, refuse_closed
from everstep.adapters.stores.sqlite.connect import APPLICATION_ID, connect, one, read, sync_folder
from everstep.domain.errors import Conflict, Unavailable
from everstep.domain.ids import Instant
from everstep.ports.fault import Fault, no_fault
from everstep.ports.store import Flaw
from everstep.wire.event import Fetch
from everstep.wire.times import to_text

LOCK: Final = "lock"
"""In `meta`: which lock file guards the store. Nobody holds a copy, however young its last beat is."""


def check(reader: Reader, fetch: Fetch, seal: Seal) -> list[Flaw]:
    """Damage of the file, then of what it holds."""
    damage = [line for (line,) in reader.rows("integrity_check", within_s=CHECK_MAX_S) if line != "ok"]
    return [*(Flaw(what=f"file: {line}") for line in damage), *check_journals(reader, fetch, seal)]


def refuse_moved(connection: apsw.Connection) -> None:
    """One that went elsewhere, or has not arrived yet."""
    refuse_closed(one(connection, "get_meta", (MOVED,)), one(connection, "get_meta", (ARRIVING,)))


def backup(path: Path, target: Path, at: Instant, fault: Fault = no_fault, *, artifacts: Path | None = None) -> None:
    """A copy as of one moment, marked as a copy, flushed and checked before it gets its name; whoever holds it goes on.

    With it go the payloads beside it: what the copy refers to was there before it was made.
    """
    if target.exists():
        raise Conflict(f"{target} exists", what_to_do="name a new file")
    fault("backup.copy.before")
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        _copy(path, unfinished)
        _mark(unfinished, at)
        if artifacts is not None and artifacts.is_dir():
            import shutil

            beside = target.with_name(f"{target.name}.artifacts")
            shutil.copytree(artifacts, beside, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
        unfinished.chmod(0o600)
        unfinished.rename(target)
        sync_folder(target.parent)
    finally:
        unfinished.unlink(missing_ok=True)
    fault("backup.copy.after")


def _copy(path: Path, target: Path) -> None:
    source = connect(path, write=False)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step()
    finally:
        copy.close()
        source.close()


def _mark(copy: Path, at: Instant) -> None:
    """Say that it is a copy; then look whether it is a whole one. Written with the rollback journal: one file only."""
    connection = connect(copy, write=True)
    try:
        read(connection, "use_rollback_journal")
        read(connection, "put_meta", (COPIED, to_text(at)))
        read(connection, "forget_meta", (LOCK,))
        sound = read(connection, "quick_check") == [("ok",)]
        if not sound or one(connection, "get_application_id") != APPLICATION_ID:
            raise Unavailable("the copy is not sound", what_to_do="look at the store: everstep db check")
    finally:
        connection.close()
