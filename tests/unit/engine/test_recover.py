"""What is left when an engine dies: found once, moved once, and no task delays another."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everstep import ToolAdapter
from everstep.adapters.stores.memory import MemoryStore
from everstep.authoring.plan import Plan
from everstep.domain.errors import LimitExceeded, StoreRefused
from everstep.domain.events import Draft, StepCompleted, TaskRecovered
from everstep.domain.fold import apply
from everstep.domain.ids import Epoch, Instant, Seq, TaskId, WorkerId
from everstep.domain.task import StepCommit, Sweep, TaskState, row_of
from everstep.domain.values import JsonObject
from everstep.engine.recover import scan, stale_before
from everstep.facade.engine import Engine
from everstep.ports.marks import Mark
from everstep.ports.store import Claim, Claimed, Commit, Dead, Stale
from everstep.ports.tool import Call, Ctx, ToolSpec, Transient
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
        return Stale(status=sweep.status, epoch=sweep.epoch, worker=sweep.worker, last_seq=sweep.last_seq or Seq(0))


async def test_a_task_that_cannot_be_recovered_is_passed_over_loudly() -> None:
    store, tools = Refusing(), Tools()
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    stuck, other = [await engine.start(Plan.from_dict(HOLD)) for _ in range(2)]
    await engine.clock.advance("1ms")
    store.refused = stuck.task_id
    await asyncio.wait_for(engine.crash(), 60)
    tools.release.set()
    await engine.clock.advance("1ms")
    assert (await engine.get(other.id)).status == "completed"
    assert (await engine.get(stuck.id)).status == "running"
    said = [fields["task"] for event, fields in engine.sink.notes if "cannot be recovered" in event]
    assert said == [stuck.id]
    await engine.close()


class Damaged(MemoryStore):
    """A store in which one journal cannot be read, and the end of another not be written."""

    unreadable: TaskId | None = None
    unwritable: TaskId | None = None

    async def load_tasks(self, ids: Sequence[TaskId]) -> Sequence[TaskState | None]:
        if self.unreadable in ids:
            raise StoreRefused("the journal cannot be read")
        return await super().load_tasks(ids)

    async def sweep(self, sweeps: Sequence[Sweep]) -> Sequence[Commit]:
        if any(sweep.task == self.unwritable for sweep in sweeps):
            raise LimitExceeded("an event is over the limit")
        return await super().sweep(sweeps)


async def test_a_damaged_task_costs_only_itself() -> None:
    store, tools = Damaged(), Tools()
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    tasks = [await engine.start(Plan.from_dict(HOLD)) for _ in range(4)]
    await engine.clock.advance("1ms")
    store.unreadable, store.unwritable = tasks[1].task_id, tasks[2].task_id
    await asyncio.wait_for(engine.crash(), 60)
    tools.release.set()
    await engine.clock.advance("1ms")
    assert {(await engine.get(tasks[n].id)).status for n in (0, 3)} == {"completed"}
    kit = engine.desk.runtime.kit
    assert await scan(kit, stale_before(kit)) == 0, "found again, as by every scan of a fleet, and told of once"
    said = [(event, fields["task"]) for event, fields in engine.sink.notes if event.startswith("a dead worker")]
    assert said == [
        ("a dead worker's task cannot be read", tasks[1].id),
        ("a dead worker's task cannot be moved", tasks[2].id),
    ]
    await engine.close()


class Clinging(ToolAdapter):
    """A family of tools that cannot let go of what it holds."""

    def tools(self) -> tuple[ToolSpec]:
        """One."""
        schema: JsonObject = {"type": "object"}
        return (ToolSpec(name="clinging.call", version="1", title="Call", description="Call.", input_schema=schema),)

    async def execute(self, call: Call, ctx: Ctx) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Not today."""
        raise RuntimeError("it does not let go")


class Empty(Clinging):
    """One that has no tools, and says so before there is anything to wait for."""

    def tools(self) -> tuple[ToolSpec, ...]:  # type: ignore[override]
        """None."""
        return ()

    def close(self) -> None:  # type: ignore[override]
        """Not even asynchronously."""
        raise RuntimeError("it does not let go at once")


async def test_a_family_without_tools_that_cannot_be_closed_keeps_no_other_from_it(tmp_path: Path) -> None:
    for _ in range(2):
        async with Engine(tmp_path / "everstep.db", tools=[Empty(), Clinging()]):
            pass
    log = (tmp_path / "logs" / "everstep.log").read_text("utf-8")
    assert "it does not let go at once" in log
    assert "clinging.call" in log, "whoever comes after it is closed too"


async def test_tools_that_cannot_be_closed_leave_the_store_to_the_next_engine(tmp_path: Path) -> None:
    for _ in range(2):
        async with Engine(tmp_path / "everstep.db", tools=[Clinging()]):
            pass
    lines = [json.loads(line) for line in (tmp_path / "logs" / "everstep.log").read_text("utf-8").splitlines()]
    said = [line for line in lines if "could not be closed" in line["message"]]
    assert (len(said), "clinging.call" in str(said[0])) == (2, True)


class Startled(MemoryStore):
    """A store in which a defect of ours shows when tasks are claimed, once."""

    defect: BaseException | None = None

    async def claim_tasks(self, claim: Claim) -> Sequence[Claimed]:
        defect, self.defect = self.defect, None
        if defect is not None:
            raise defect
        return await super().claim_tasks(claim)


@pytest.mark.parametrize("defect", [RuntimeError("nobody thought of this"), asyncio.CancelledError()])
async def test_claims_go_on_after_a_defect(defect: BaseException) -> None:
    store, tools = Startled(), Tools()
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    steps: list[JsonObject] = [
        {"id": "a", "tool": "test.hold", "with": {}},
        {"id": "b", "tool": "test.echo", "with": {}},
    ]
    task = await engine.start(Plan.from_dict({"name": "p", "steps": [*steps]}))
    await engine.clock.advance("1ms")
    await task.pause()
    tools.release.set()
    await engine.clock.advance("1ms")
    store.defect = defect
    await task.resume()
    await engine.clock.advance("10s")
    assert (await engine.get(task.id)).status == "completed"
    assert [said for said, _ in engine.sink.notes if "defect" in said] == [
        "carrying tasks died of a defect and begins again"
    ]
    await engine.close()


class Overtaken(MemoryStore):
    """A store in which another engine moves and claims a dead one's task between the look for it and the move."""

    faster: WorkerId | None = None

    async def find_dead(self, worker: WorkerId, before: Instant, limit: int) -> Sequence[Dead]:
        found = await super().find_dead(worker, before, limit)
        if self.faster is not None and found:
            other, self.faster = self.faster, None
            states = await super().load_tasks([one.task for one in found])
            await super().sweep([_moved(one, state) for one, state in zip(found, states, strict=True) if state])
            await super().claim_tasks(Claim(worker=other, at=before, limit=9))
        return found


def _moved(one: Dead, state: TaskState) -> Sweep:
    said = TaskRecovered(
        from_status=state.status,
        reason="worker_dead",
        worker=state.worker,
        epoch=Epoch(one.epoch + 1),
        last_heartbeat_at=None,
        threshold_s=30.0,
        recoveries=1,
        steps=(),
    )
    status, worker = state.status, state.worker
    apply(state, said, None, Instant(0))
    drafts = (Draft(body=said),)
    return Sweep(
        task=one.task,
        status=status,
        epoch=one.epoch,
        worker=worker,
        at=Instant(0),
        drafts=drafts,
        row=row_of(state),
        last_seq=None,
    )


@pytest.mark.req("WF-14", "WF-28")
async def test_what_another_engine_has_taken_over_meanwhile_is_left_to_it() -> None:
    store, tools = Overtaken(), Tools()
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    task = await engine.start(Plan.from_dict(HOLD))
    await engine.clock.advance("1ms")
    store.faster = WorkerId("w_faster")
    await asyncio.wait_for(engine.crash(), 60)
    (state,) = await store.load_tasks((task.task_id,))
    assert state is not None
    assert (state.worker, state.epoch) == ("w_faster", 3)
    assert not [event for event, _ in engine.sink.notes if "cannot be recovered" in event]
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


class Counting(MemoryStore):
    """A store that counts how often each task is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[TaskId] = Counter()

    async def load_tasks(self, ids: Sequence[TaskId]) -> Sequence[TaskState | None]:
        self.read.update(ids)
        return await super().load_tasks(ids)


async def test_what_a_dead_worker_left_is_read_once() -> None:
    store, tools = Counting(), Tools()
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    tasks = [await engine.start(Plan.from_dict(HOLD)) for _ in range(3)]
    await engine.clock.advance("1ms")
    store.read.clear()
    await asyncio.wait_for(engine.crash(), 60)
    await engine.clock.advance("1ms")
    assert store.read == dict.fromkeys([task.task_id for task in tasks], 1)
    tools.release.set()
    await engine.clock.advance("1ms")
    assert {(await engine.get(task.id)).status for task in tasks} == {"completed"}
    await engine.close()


class Defective(MemoryStore):
    """A store in which a defect of ours shows when the end of a call is written, so often."""

    defects = 0

    async def commit_steps(self, commits: Sequence[StepCommit]) -> Sequence[Commit]:
        if self.defects and any(isinstance(draft.body, StepCompleted) for one in commits for draft in one.drafts):
            self.defects -= 1
            raise RuntimeError("nobody thought of this")
        return await super().commit_steps(commits)


@pytest.mark.parametrize(
    ("defects", "status", "recoveries"),
    [(1, "completed", [1]), (99, "failed", [1, 2, 3, 4, 5, 6])],
    ids=["once", "always"],
)
async def test_a_walk_that_dies_of_a_defect_is_told_of_and_taken_up_again(
    defects: int, status: str, recoveries: list[int]
) -> None:
    store, tools = Defective(), Tools()
    store.defects = defects
    engine = TestEngine(tools.all(), store=store)
    await engine.open()
    task = await engine.start(Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "test.echo", "with": {}}]}))
    await engine.clock.advance("1m")
    task = await engine.get(task.id)
    assert task.status == status
    told = [one.data async for one in task.events() if one.type == "task.recovered"]
    assert [(one["reason"], one["recoveries"]) for one in told] == [("walk_died", n) for n in recoveries]
    assert tools.calls["echo"] == len(recoveries) + (status == "completed")
    assert len([said for said, _ in engine.sink.notes if said == "a walk died"]) == len(recoveries)
    await engine.close()


async def test_a_call_that_dies_of_a_defect_before_it_is_made_takes_its_walk_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the walk would wait for its end for ever, and nobody would hear of it."""
    tools = Tools()
    engine = TestEngine(tools.all())
    await engine.open()
    find, defects = engine.store.marks.find, [RuntimeError("nobody thought of this")]

    async def found(*asked: Any) -> Mark | None:
        if defects:
            raise defects.pop()
        return await find(*asked)

    monkeypatch.setattr(engine.store.marks, "find", found)
    tools.raises["echo"] = [Transient("busy"), None]
    task = await engine.start(Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "test.echo", "with": {}}]}))
    await engine.clock.advance("1m")
    assert (await task.refresh()).status == "completed"
    assert [one.data["reason"] async for one in task.events() if one.type == "task.recovered"] == ["walk_died"]
    assert [said for said, _ in engine.sink.notes if said == "a walk died"] == ["a walk died"]
    await engine.close()
