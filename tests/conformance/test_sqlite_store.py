"""The embedded store keeps the rules of the port."""

from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from everstep.adapters.stores.sqlite.sql import sql
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.ports.store import Store, Worker
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance.store import CASES, Case


@dataclass
class SqliteRig:
    path: Path

    async def open(self, worker: Worker) -> Store:
        store = SqliteStore(self.path, clock=VirtualClock())
        await store.open(worker)
        return store

    async def register(self, worker: Worker) -> None:
        columns = (
            worker.id,
            worker.name,
            worker.host,
            worker.pid,
            worker.version,
            worker.started_at,
            worker.heartbeat_at,
        )
        connection = apsw.Connection(str(self.path))
        connection.execute(sql("insert_worker"), columns)
        connection.close()


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.story.__name__, marks=pytest.mark.req(*case.proves)) for case in CASES],
)
async def test_conformance(case: Case, tmp_path: Path) -> None:
    await case.story(SqliteRig(tmp_path / ".everstep" / "everstep.db"))
