"""What the tests of the embedded store share."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.ports.fault import Fault, no_fault
from everstep.ports.store import Worker
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.stage import Scene


@asynccontextmanager
async def opened(path: Path, fault: Fault = no_fault, worker: Worker | None = None) -> AsyncIterator[Scene]:
    """An open store, closed at the end."""
    me = worker or f.worker()
    store = SqliteStore(path, clock=VirtualClock(), fault=fault)
    await store.open(me)
    try:
        yield Scene(store, me)
    finally:
        await store.close()


@contextmanager
def raw(path: Path) -> Iterator[apsw.Connection]:
    """A foreign connection, as a vandal would use it."""
    with closing(apsw.Connection(str(path))) as connection:
        yield connection


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a look from outside shows."""
    with raw(path) as connection:
        return list(connection.execute(query))
