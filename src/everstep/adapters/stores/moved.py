"""A store that goes elsewhere, from what the settings name into what is named; or back, for an older program."""

import os
import socket
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from everstep.adapters.stores.named import now, postgres_part
from everstep.adapters.stores.sql.moving import Arriving, Leaving, move
from everstep.adapters.stores.sqlite.connect import Durability
from everstep.adapters.stores.sqlite.moving import arriving, leaving, lower
from everstep.adapters.stores.sqlite.opening import Setup
from everstep.domain.errors import Validation
from everstep.domain.ids import WorkerId
from everstep.ports.fault import no_fault
from everstep.ports.store import Worker
from everstep.settings import Settings
from everstep.settings.place import DATABASES, scheme_of, shown_store
from everstep.settings.values import beside


def move_store(settings: Settings, target: str) -> int:
    """This store into an empty one of either kind, tasks in flight included; how many tasks.

    Blocking, and it may be done again.
    """
    if target == settings.store or scheme_of(target) not in (None, *DATABASES):
        raise Validation(
            f"a store cannot be moved to {shown_store(target)}", what_to_do="name an empty file, or postgresql://…"
        )
    with _leaving(settings) as going, _arriving(settings, target) as coming:
        return move(going, coming, settings.audit_key)


def lower_store(settings: Settings) -> int:
    """Its schema one step back, so that the program before this one opens it; the schema's number then. Blocking."""
    if settings.store_path is not None:
        return lower(_on_file(settings, settings.store_path, settings.artifacts), _mover())
    migrating = postgres_part("everstep.adapters.stores.postgres.migrate")
    return cast("int", migrating.lower_at(settings.store, settings.engine.stale_after_ms))


def _leaving(settings: Settings) -> AbstractContextManager[Leaving]:
    if settings.store_path is not None:
        return leaving(_on_file(settings, settings.store_path, settings.artifacts), _mover())
    moving = postgres_part("everstep.adapters.stores.postgres.moving")
    return cast(
        "AbstractContextManager[Leaving]", moving.leaving(settings.store, now(), settings.engine.stale_after_ms)
    )


def _arriving(settings: Settings, target: str) -> AbstractContextManager[Arriving]:
    if scheme_of(target) is None:
        path, usual = Path(target), settings.artifacts == beside(settings.home, "artifacts")
        return arriving(_on_file(settings, path, beside(path, "artifacts") if usual else settings.artifacts), _mover())
    moving = postgres_part("everstep.adapters.stores.postgres.moving")
    return cast("AbstractContextManager[Arriving]", moving.arriving(target, now()))


def _on_file(settings: Settings, path: Path, artifacts: Path) -> Setup:
    return Setup(
        path=path,
        artifacts=artifacts,
        durability=cast("Durability", settings.durability),
        allow_fuse=settings.engine.allow_fuse,
        fault=no_fault,
        audit_key=settings.audit_key,
    )


def _mover() -> Worker:
    """Who holds a store while it is moved."""
    from importlib.metadata import version  # brings half of the standard library with it

    host, at = socket.gethostname(), now()
    return Worker(
        id=WorkerId("w_mover"),
        name=host,
        host=host,
        pid=os.getpid(),
        version=version("everstep"),
        started_at=at,
        heartbeat_at=at,
    )
