"""The store of a fleet keeps the rules of the port."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from everstep.adapters.stores.postgres.connect import connect
from everstep.adapters.stores.postgres.sql import sql
from everstep.adapters.stores.postgres.store import PgStore
from everstep.ports.store import Store, Worker
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance.store import CASES, Case
from tests.postgres import schema


@dataclass
class PostgresRig:
    url: str
    opened: list[PgStore] = field(default_factory=list)

    async def open(self, worker: Worker) -> Store:
        store = PgStore(self.url, clock=VirtualClock())
        await store.open(worker)
        self.opened.append(store)
        return store

    async def register(self, worker: Worker) -> None:
        age = VirtualClock().now() - worker.heartbeat_at
        columns = (worker.id, worker.name, worker.host, worker.pid, worker.version, "[]", worker.started_at)
        with connect(self.url) as connection:
            connection.execute(sql("insert_worker"), (*columns, worker.heartbeat_at, age))


@pytest.fixture
def url() -> Iterator[str]:
    with schema() as own:
        yield own


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.story.__name__, marks=pytest.mark.req(*case.proves)) for case in CASES],
)
async def test_conformance(case: Case, url: str) -> None:
    rig = PostgresRig(url)
    try:
        await case.story(rig)
    finally:
        for store in rig.opened:
            await store.close()
