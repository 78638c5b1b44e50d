"""The store in memory keeps the rules of the port."""

from dataclasses import dataclass, field

import pytest

from everstep.adapters.stores.memory import MemoryStore
from everstep.ports.store import Store, Worker
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.store import CASES, Case, exercise_store


@dataclass
class MemoryRig:
    store: MemoryStore = field(default_factory=MemoryStore)

    async def open(self, worker: Worker) -> Store:
        await self.store.open(worker)
        return self.store

    async def register(self, worker: Worker) -> None:
        self.store._workers[worker.id] = worker


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.story.__name__, marks=pytest.mark.req(*case.proves)) for case in CASES],
)
async def test_conformance(case: Case) -> None:
    await case.story(MemoryRig())


async def test_the_suite_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everstep.testing.conformance.store.CASES", CASES[:2])
    await exercise_store(MemoryRig)


async def test_check_finds_a_row_that_does_not_follow() -> None:
    rig = MemoryRig()
    store = await rig.open(f.worker())
    new = f.new_task()
    await store.create_tasks((new,))
    rig.store._tasks[new.id].epoch = 7  # type: ignore[assignment]
    (flaw,) = await store.check()
    assert str(flaw) == f"{new.id}: the row does not follow from the journal"
