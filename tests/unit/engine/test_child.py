"""`plan.run`: a step that is a task of its own, on the real engine in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.ids import StepPath
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine import control
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.ports.store import TaskFilter
from everstep.ports.tool import Misconfigured
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import Window
from tests.unit.engine.plans import Tools, final

HOLD: JsonObject = {"id": "h", "tool": "test.hold"}


@pytest.fixture
async def engine(tools: Tools, tmp_path: Path) -> AsyncIterator[TestEngine]:
    (tmp_path / "kid.plan.yaml").write_text(
        "name: kid\ninputs: {n: integer}\nsteps:\n- {id: k, tool: test.echo, with: {value: '${inputs.n}', label: k}}\n"
        "outputs: {n: '${k.value}'}\n",
        encoding="utf-8",
    )
    config: dict[str, JsonValue] = {"plans": {"dirs": [str(tmp_path)]}}
    async with TestEngine(tools.all(), workspace=tmp_path, config=config) as opened:
        yield opened
        assert await opened.store.check() == []


async def finish(engine: TestEngine, task: Task, after: str = "10m") -> Result:
    waiting = asyncio.create_task(task.result(on_pause="return"))
    for _ in range(10):  # plans are read in a thread
        await asyncio.sleep(0.005)
        await engine.clock.advance("1s")
    await engine.clock.advance(after)
    return await asyncio.wait_for(waiting, 60)


def trusted(*steps: JsonObject, **keys: JsonValue) -> Plan:
    read = Plan.from_dict({"name": "p", "steps": list(steps), **keys})
    read.trusted = True
    return read


def runs(plan: JsonValue, **more: JsonValue) -> JsonObject:
    return {"id": "sub", "tool": "plan.run", "with": {"plan": plan}, **more}


def inline(*steps: JsonObject, **keys: JsonValue) -> JsonObject:
    return {"name": "kid", "steps": list(steps), **keys}


async def children(engine: TestEngine) -> list[TaskState]:
    page = await engine.desk.list(TaskFilter(plan_name="kid"))
    return [await engine.desk.get(item.id, engine.who) for item in page.items]


@pytest.mark.parametrize("plan", ["kid", "kid.plan.yaml"])
async def test_a_child_gives_its_outputs(engine: TestEngine, tools: Tools, plan: str) -> None:
    step: JsonObject = {"id": "sub", "tool": "plan.run", "with": {"plan": plan, "inputs": {"n": 7}}}
    task = await engine.start(trusted(step, outputs={"n": "${sub.n}"}))
    assert (await finish(engine, task)).outputs == {"n": 7}
    (child,) = await children(engine)
    assert child.parent is not None
    assert (child.parent.task, child.parent.step, child.parent.link) == (task.id, "sub", "child_of")


async def test_a_failed_child_is_the_cause(engine: TestEngine, tools: Tools) -> None:
    tools.raises["k"] = [Misconfigured("no such thing")]
    step: JsonObject = {"id": "sub", "tool": "plan.run", "with": {"plan": "kid", "inputs": {"n": 7}}}
    task = await engine.start(trusted(step))
    result = await finish(engine, task)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["code"] == "child_failed"
    assert isinstance(result.error["cause"], dict)
    assert result.error["cause"]["message"] == "no such thing"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"plan": "nobody"}, "plan_not_found"),
        ({"plan": "../outside.plan.yaml"}, "policy_denied"),
        ({"plan": {"name": "kid"}}, "plan_invalid"),
        ({"plan": inline({"id": "x", "tool": "no.tool"})}, "plan_invalid"),
        ({"plan": "kid"}, "inputs_invalid"),
    ],
)
async def test_a_plan_that_cannot_be_a_child(
    engine: TestEngine, arguments: JsonObject, code: str, tools: Tools
) -> None:
    task = await engine.start(trusted({"id": "sub", "tool": "plan.run", "with": arguments}))
    result = await finish(engine, task)
    assert result.error is not None
    assert result.error["code"] == code
    assert await children(engine) == []


async def test_strangers_only_use_published_plans(engine: TestEngine, tools: Tools) -> None:
    steps: list[JsonValue] = [runs(inline({"id": "k", "tool": "test.echo"}))]
    task = await engine.start(Plan.from_dict({"name": "p", "steps": steps}))
    result = await finish(engine, task)
    assert result.error is not None
    assert result.error["code"] == "policy_denied"


@pytest.mark.parametrize("by_operator", [True, False])
async def test_a_step_that_a_stranger_adds_to_a_trusted_plan_is_a_strangers(
    engine: TestEngine, tools: Tools, by_operator: bool
) -> None:
    """Also in a fork, and after a crash."""
    task = await engine.start(trusted(HOLD))
    await asyncio.wait_for(tools.holding.wait(), 60)
    window = Window(engine)
    ops: JsonValue = [{"op": "append", "step": runs(inline({"id": "k", "tool": "test.echo"}))}]
    path = f"/v1/tasks/{task.id}/plan"
    done = await window.good("PATCH", path, {"base_revision": 1, "ops": ops}, local=by_operator)
    assert done["revision"] == 2
    await engine.crash()
    tools.release.set()
    task = await engine.get(task.id)
    ends = [await finish(engine, task)]
    ends.append(await finish(engine, await task.fork(from_step="sub")))
    if by_operator:
        assert [end.status for end in ends] == ["completed"] * 2
        assert [child.trusted for child in await children(engine)] == [True] * 2
    else:
        assert [end.error and end.error["code"] for end in ends] == ["policy_denied"] * 2


async def test_a_plan_out_of_data_is_data(engine: TestEngine, tools: Tools) -> None:
    kid: JsonValue = inline({"id": "k", "tool": "test.echo"})
    made: JsonObject = {"id": "made", "tool": "test.echo", "with": {"value": kid}}
    result = await finish(engine, await engine.start(trusted(made, runs("${made.value}", approve=True))))
    await engine.inbox.only().approve()
    assert result.status == "paused"
    await engine.clock.advance("1m")
    (child,) = await children(engine)
    assert not child.trusted


async def test_neither_side_loses_the_other_in_a_crash(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(trusted(runs(inline(HOLD, outputs={"l": "$${h.label}"})), outputs={"l": "${sub.l}"}))
    await asyncio.wait_for(tools.holding.wait(), 60)
    for _ in range(3):
        await engine.crash()
        await engine.clock.advance("1s")
    tools.release.set()
    task = await engine.get(task.id)
    assert (await finish(engine, task)).outputs == {"l": "hold"}
    assert len(await children(engine)) == 1, "made once"


async def test_a_cancelled_parent_cancels_its_child(engine: TestEngine, tools: Tools) -> None:
    tidy: JsonObject = {"id": "tidy", "tool": "test.echo", "with": {"label": "tidy"}}
    task = await engine.start(trusted(runs(inline(HOLD, **final(tidy)))))
    await asyncio.wait_for(tools.holding.wait(), 60)
    await task.cancel()
    assert (await finish(engine, task)).status == "cancelled"
    (child,) = await children(engine)
    assert child.status == "cancelled"
    assert tools.calls["tidy"] == 1, "the child tidies up as well"


async def test_a_waiting_parent_holds_no_place(tools: Tools, tmp_path: Path) -> None:
    async with TestEngine(tools.all(), workspace=tmp_path, config={"engine": {"tasks": 1}}) as engine:
        deep: JsonObject = inline({"id": "k", "tool": "test.echo", "with": {"label": "k"}})
        for _ in range(3):
            deep = inline(runs(deep))
        task = await engine.start(trusted(runs(deep)))
        assert (await finish(engine, task)).status == "completed"
        assert tools.calls["k"] == 1


async def test_tasks_make_tasks_five_deep_at_most(engine: TestEngine, tools: Tools) -> None:
    deep: JsonObject = inline({"id": "k", "tool": "test.echo", "with": {"label": "k"}})
    for _ in range(6):
        deep = inline(runs(deep))
    task = await engine.start(trusted(runs(deep)))
    result = await finish(engine, task)
    assert result.status == "failed"
    assert tools.calls["k"] == 0
    innermost = [state for state in await children(engine) if state.error is not None]
    assert any(state.error and state.error.failure.code == "plan_too_deep" for state in innermost)


async def test_a_retry_makes_another_child(engine: TestEngine, tools: Tools) -> None:
    tools.raises["k"] = [Misconfigured("no"), None]
    step: JsonObject = {"id": "sub", "tool": "plan.run", "with": {"plan": "kid", "inputs": {"n": 1}}}
    task = await engine.start(trusted(step))
    assert (await finish(engine, task)).status == "failed"
    await task.retry(confirm_effects=True)
    assert (await finish(engine, task)).status == "completed"
    assert len(await children(engine)) == 2


async def test_while_it_waits_the_step_is_no_call(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(trusted(runs(inline(HOLD))))
    await asyncio.wait_for(tools.holding.wait(), 60)
    state = await engine.desk.get(task.id, engine.who)
    assert (state.in_flight, list(state.children)) == ((), ["sub"])
    assert state.steps[StepPath("sub")].status is StepStatus.RUNNING
    await task.pause()
    await engine.clock.advance("1s")
    assert (await task.refresh()).status == "paused"
    (child,) = await children(engine)
    assert child.status == "pausing", "it stands still with its parent"
    tools.release.set()
    await engine.clock.advance("1s")
    assert [one.status for one in await children(engine)] == ["paused"]
    await task.resume()
    assert (await finish(engine, task)).status == "completed"


async def test_a_childs_own_pause_is_not_lifted_by_its_parent(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(trusted(runs(inline(HOLD))))
    await asyncio.wait_for(tools.holding.wait(), 60)
    (child,) = await children(engine)
    await (await engine.get(child.id)).pause(note="mine")
    await task.pause()
    await task.resume()
    tools.release.set()
    await engine.clock.advance("1s")
    assert [one.status for one in await children(engine)] == ["paused"]
    await (await engine.get(child.id)).resume()
    assert (await finish(engine, task)).status == "completed"


async def test_a_crash_between_the_pauses_of_parent_and_child_leaves_neither_running(
    engine: TestEngine, tools: Tools
) -> None:
    """What the parent's pause or resume could not tell its child any more is told when they are taken up again."""
    task = await engine.start(trusted(runs(inline(HOLD, {"id": "k", "tool": "test.echo", "with": {"label": "k"}}))))
    await asyncio.wait_for(tools.holding.wait(), 60)
    await control.pause(task.task_id, engine.who, None, engine.desk._kit)
    await engine.crash()
    tools.release.set()
    await engine.clock.advance("1s")
    task = await engine.get(task.id)
    assert (task.status, [one.status for one in await children(engine)]) == ("paused", ["paused"])
    assert tools.calls["k"] == 0
    await control.resume(task.task_id, engine.who, None, engine.desk._kit)
    await engine.crash()
    assert (await finish(engine, await engine.get(task.id))).status == "completed"
