"""What is left when an engine dies: found once, moved once, and no task delays another."""

import asyncio
from collections.abc import Sequence

from everstep.adapters.stores.memory import MemoryStore
from everstep.authoring.plan import Plan
from everstep.domain.ids import Seq, TaskId
from everstep.domain.task import Sweep
from everstep.domain.values import JsonObject
from everstep.ports.store import Commit, Stale
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools

HOLD: JsonObject = {"name": "p", "steps": [{"id": "a", "tool": "test.hold", "with": {}}]}


class Refusing(MemoryStore):
    """A store that never lets one task be recovered."""

    refused: TaskId | None = None

    async def sweep(self, sweeps: Sequence[Sweep]) -> Sequence[Commit]:
        answers = iter(await super().sweep([sweep for sweep in sweeps if sweep.task != self.refused]))
        return [self._stale(sweep) if sweep.task == self.refused else next(answers) for sweep in sweeps]

    def _stale(self, sweep: Sweep) -> Stale:
        return Stale(status=sweep.status, epoch=sweep.epoch, worker=sweep.worker, last_seq=Seq(0))


async def test_a_task_that_cannot_be_recovered_is_passed_over_loudly() -> None:
    store, tools = Refusing(), Tools()
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    stuck, other = [await engine.start(Plan.from_dict(HOLD)) for _ in range(2)]
    await engine.clock.advance("1ms")
    store.refused = stuck.task_id
    await asyncio.wait_for(engine.crash(), 5)
    tools.release.set()
    await engine.clock.advance("1ms")
    assert (await engine.get(other.id)).status == "completed"
    assert (await engine.get(stuck.id)).status == "running"
    said = [fields["task"] for event, fields in engine.sink.notes if "cannot be recovered" in event]
    assert said == [stuck.id]
    await engine.close()


async def test_a_submitted_task_is_a_snapshot_until_somebody_looks_again() -> None:
    tools = Tools()
    async with TestEngine(tools.all()) as engine:
        await engine.clock.advance("1ms")  # the loop is up: the task begins where it is created
        task = await engine.start(Plan.from_dict(HOLD))
        await engine.clock.advance("1ms")
        assert task.status == "queued"
        assert (await task.refresh()).status == "running"
        tools.release.set()
