"""Everything stands still: no claim and no call, over restarts too; then everything goes on as if nothing had been."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from everstep import Engine, Plan
from everstep.adapters.stores.memory import MemoryStore
from everstep.domain.errors import Validation
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.ids import Instant, TaskId
from everstep.domain.task import StepCommit, TaskState
from everstep.ports.store import Commit
from everstep.ports.tool import Transient
from everstep.ports.traffic import Halt
from everstep.testing.engine import TestEngine
from everstep.torture import checker
from tests.unit.engine.plans import Tools, chain

OPERATOR = Who(owner="local", actor=Actor(kind=ActorKind.HUMAN, id="op", via="cli"))


def held(name: str) -> Plan:
    steps = [
        {"id": "a", "tool": name, "with": {"label": "a"}},
        {"id": "b", "tool": "test.echo", "with": {"label": "b"}},
    ]
    return Plan.from_dict({"name": "p", "steps": steps})  # type: ignore[dict-item]


async def test_calls_in_flight_end_and_nothing_follows_until_it_is_lifted(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(held("test.once"))
    await tools.holding.wait()
    await engine.desk.halt(OPERATOR, "fire drill")
    waiting = await engine.start(chain("c"))
    tools.release.set()
    await engine.clock.advance("1h")
    await task.refresh()
    await waiting.refresh()
    assert (task.status, tools.calls) == ("running", {"a": 1})
    assert {name: step.status.value for name, step in task.steps.items()} == {"a": "completed", "b": "pending"}
    assert waiting.status == "queued"
    await engine.desk.lift_halt()
    assert [(await one.result()).status for one in (task, waiting)] == ["completed", "completed"]
    assert tools.calls == {"a": 1, "b": 1, "c": 1}


class Counting(MemoryStore):
    """Counts the commits that were tried."""

    tried = 0

    async def commit_steps(self, commits: Sequence[StepCommit]) -> Sequence[Commit]:
        self.tried += 1
        return await super().commit_steps(commits)


async def test_what_comes_of_a_call_is_kept_where_another_engine_has_halted_everything(tools: Tools) -> None:
    """This engine has not heard of it yet: the store refuses the next call, not the outcome of this one."""
    store = Counting()
    async with TestEngine(tools.all(), store=store) as engine:
        task = await engine.start(held("test.once"))
        await tools.holding.wait()
        await store.set_halt(Halt(mode="graceful", by="another", at=Instant(0), note=None))
        store.tried = 0
        tools.release.set()
        await engine.clock.advance("1ms")
        await task.refresh()
        assert {name: step.status.value for name, step in task.steps.items()} == {"a": "completed", "b": "pending"}
        assert (store.tried, tools.calls) == (2, {"a": 1})
        await engine.desk.lift_halt()
        assert ((await task.result()).status, tools.calls) == ("completed", {"a": 1, "b": 1})


async def test_it_is_kept_over_a_crash(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(held("test.hold"))
    await tools.holding.wait()
    await engine.desk.halt(OPERATOR, None)
    await engine.crash()
    await engine.clock.advance("1h")
    assert engine.desk.halted is not None
    assert engine.desk.halted.by == "op"
    task = await engine.get(task.id)
    assert (task.status, tools.calls["a"]) == ("stalled", 1)
    tools.release.set()
    await engine.desk.lift_halt()
    assert (await task.result()).status == "completed"


@pytest.mark.parametrize(("name", "asks"), [("test.hold", False), ("test.once", True)])
async def test_at_once_ends_calls_by_the_effect_rule(
    engine: TestEngine, tools: Tools, name: str, *, asks: bool
) -> None:
    task = await engine.start(held(name))
    await tools.holding.wait()
    await engine.desk.halt(OPERATOR, None, "immediate")
    await engine.clock.advance("1ms")
    await task.refresh()
    assert [pause.type for pause in task.pauses] == (["uncertainOutcome"] if asks else [])
    killed = [event async for event in task.events(follow=False) if event.type == "attempt.killed"]
    assert [event.data["error"]["code"] for event in killed] == ["halted"]  # type: ignore[index,call-overload]
    tools.release.set()
    await engine.clock.advance("1m")
    assert tools.calls == {"a": 1}
    await engine.desk.lift_halt()
    for pause in task.pauses:
        await pause.not_happened()
    assert (await task.result()).status == "completed"
    assert tools.calls == {"a": 2, "b": 1}
    starts = [event async for event in task.events(follow=False) if event.type == "attempt.started"]
    assert starts[0].data["idempotency_key"] == starts[1].data["idempotency_key"]


async def test_a_cancelled_task_tidies_up_only_when_it_is_lifted(engine: TestEngine, tools: Tools) -> None:
    plan = Plan.from_dict(
        {
            "name": "p",
            "steps": [{"id": "a", "tool": "test.hold", "with": {"label": "a"}}],
            "finally": [{"id": "z", "tool": "test.echo", "with": {"label": "z"}}],
        }
    )
    task = await engine.start(plan)
    await tools.holding.wait()
    await engine.desk.halt(OPERATOR, None)
    await task.cancel()
    await engine.clock.advance("30s")
    assert ((await task.refresh()).status, tools.calls["z"]) == ("cancelling", 0)
    await engine.desk.lift_halt()
    await engine.clock.advance("1m")
    assert ((await task.refresh()).status, tools.calls["z"]) == ("cancelled", 1)


async def test_a_mode_that_does_not_exist_is_refused(engine: TestEngine) -> None:
    with pytest.raises(Validation, match="graceful, immediate"):
        await engine.desk.halt(OPERATOR, None, "brutal")
    assert engine.desk.halted is None


async def test_on_a_file_and_the_judge_agrees(tools: Tools, tmp_path: Path) -> None:
    store = tmp_path / "everstep.db"
    async with Engine(store, tools=tools.all()) as engine:
        task = await engine.start(held("test.hold"))
        await tools.holding.wait()
        await engine.desk.halt(OPERATOR, None, "immediate")
    async with Engine(store, tools=tools.all()) as engine:
        assert engine.desk.halted is not None
        tools.release.set()
        await engine.desk.lift_halt()
        task = await engine.get(task.id)
        assert (await task.result()).status == "completed"
    assert tools.calls == {"a": 2, "b": 1}
    assert [violation._asdict() for violation in checker.check(store)] == []


async def test_what_becomes_due_meanwhile_waits_without_being_looked_at(engine: TestEngine, tools: Tools) -> None:
    """A retry whose time comes while everything stands still costs nothing until it goes on."""
    tools.raises["c"] = [Transient("503"), None]
    task = await engine.start(chain("c"))
    await engine.clock.advance("100ms")
    await engine.desk.halt(OPERATOR, None)
    await engine.clock.advance("1ms")
    looks = 0
    load = engine.store.load_tasks

    async def counted(ids: Sequence[TaskId]) -> Sequence[TaskState | None]:
        nonlocal looks
        looks += 1
        return await load(ids)

    engine.store.load_tasks = counted  # type: ignore[method-assign]
    await engine.clock.advance("1h")
    assert (looks, tools.calls["c"]) == (0, 1)
    await engine.desk.lift_halt()
    await engine.clock.advance("1s")
    assert (await task.refresh()).status == "completed"
