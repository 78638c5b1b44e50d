"""A step that lacks an output: run the producer after all, or supply what it should have given."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everstep import Engine, Plan
from everstep.domain.bindings import Unresolved, resolve
from everstep.domain.errors import Conflict, Validation
from everstep.domain.graph import wire_plan
from everstep.domain.ids import StepPath
from everstep.domain.pauses import UnresolvableParams, UnresolvedDependency
from everstep.domain.scope import StateScope
from everstep.domain.states import StepStatus
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine import hinder
from everstep.facade.task import Task
from everstep.ports.tool import Impossible, Transient
from everstep.testing.engine import TestEngine
from everstep.torture import checker
from tests.unit.engine.plans import Tools
from tests.unit.histories import History, plan, sealed, step


def echo(id: str, value: JsonValue = None, **keys: Any) -> JsonObject:
    return {"id": id, "tool": "test.echo", "with": {"value": value, "label": id}, "retry": 0, **keys}


PLAN = Plan.from_dict(
    {
        "name": "p",
        "steps": [echo("make", 1, on_error="pause"), echo("use", "${make.value}"), echo("last", "${use.value}")],
        "outputs": {"last": "${last.value}"},
    }
)


async def lacking(engine: TestEngine, tools: Tools, plan: Plan = PLAN) -> Task:
    """A task whose producer failed, was skipped by an answer, and is missed now."""
    tools.raises["make"] = [Impossible("not yet"), None]
    task = await engine.start(plan)
    await engine.clock.advance("1ms")
    await (await task.refresh()).pauses[0].skip()
    await engine.clock.advance("1ms")
    (pause,) = (await task.refresh()).pauses
    assert (pause.type, pause.step) == ("unresolvedDependency", "use")
    assert pause.answers == ("run_producer", "supply_output", "skip", "cancel")
    return task


async def ended(engine: TestEngine, task: Task) -> Task:
    await engine.clock.advance("1m")
    return await task.refresh()


async def test_the_producer_is_carried_out_after_all_and_the_step_goes_on(engine: TestEngine, tools: Tools) -> None:
    task = await lacking(engine, tools)
    await task.pauses[0].run_producer()
    await ended(engine, task)
    assert (task.status, task.outcome, task.outputs) == ("completed", "success", {"last": 1})
    assert tools.calls == {"make": 2, "use": 1, "last": 1}
    starts = [e async for e in task.events(follow=False) if e.type == "attempt.started" and e.step == "make"]
    assert [start.data["attempt"] for start in starts] == [1, 2]
    assert starts[0].data["idempotency_key"] != starts[1].data["idempotency_key"], "a deliberate retry is a new try"


async def test_a_producer_that_fails_again_is_asked_about_again(engine: TestEngine, tools: Tools) -> None:
    task = await lacking(engine, tools)
    tools.raises["make"] = [Impossible("still not")]
    await task.pauses[0].run_producer()
    await ended(engine, task)
    assert [(pause.type, pause.step) for pause in task.pauses] == [("toolError", "make")]
    await task.pauses[0].supply_output({"value": 5})
    await ended(engine, task)
    assert (task.status, task.outputs) == ("completed", {"last": 5})


async def test_an_output_is_supplied_in_place_of_the_producer(engine: TestEngine, tools: Tools) -> None:
    task = await lacking(engine, tools)
    with pytest.raises(Validation, match="does not fit"):
        await task.pauses[0].supply_output("no object")
    assert (await task.refresh()).status == "paused", "a bad answer leaves the pause open"
    await task.pauses[0].supply_output({"value": 9})
    await ended(engine, task)
    assert (task.status, task.outputs, tools.calls["make"]) == ("completed", {"last": 9}, 1)
    (make,) = [e async for e in task.events(follow=False) if e.type == "step.completed" and e.step == "make"]
    assert make.data["via"] == "supplied"


async def test_the_answer_survives_a_crash(engine: TestEngine, tools: Tools) -> None:
    task = await lacking(engine, tools)
    await task.pause()
    await task.pauses[0].run_producer()
    await engine.crash()
    task = await engine.get(task.id)
    assert (task.status, {name: step.status.value for name, step in task.steps.items()}) == (
        "paused",
        {"make": "pending", "use": "running", "last": "pending"},
    )
    await task.resume()
    assert (await ended(engine, task)).outputs == {"last": 1}


async def test_two_steps_that_lack_the_same_output(engine: TestEngine, tools: Tools) -> None:
    plan = Plan.from_dict(
        {
            "name": "p",
            "parallel": 2,
            "steps": [
                echo("make", 1, on_error="pause"),
                echo("use", "${make.value}"),
                echo("also", "${make.value}", needs=[]),
            ],
            "outputs": {"both": ["${use.value}", "${also.value}"]},
        }
    )
    tools.raises["make"] = [Impossible("not yet"), None]
    task = await engine.start(plan)
    await engine.clock.advance("1ms")
    await (await task.refresh()).pauses[0].skip()
    await engine.clock.advance("1ms")
    first, second = (await task.refresh()).pauses
    await first.run_producer()
    await ended(engine, task)
    assert (task.status, [pause.step for pause in task.pauses]) == ("paused", ["also"])
    with pytest.raises(Conflict, match="is completed meanwhile"):
        await second.supply_output({"value": 3})
    await second.run_producer()
    await ended(engine, task)
    assert (task.status, task.outputs, tools.calls["make"]) == ("completed", {"both": [1, 1]}, 2)


async def test_items_that_have_their_result_keep_it(engine: TestEngine, tools: Tools) -> None:
    plan = Plan.from_dict(
        {
            "name": "p",
            "steps": [
                {**echo("make", "${item}", on_error="pause"), "for_each": [1, 2, 3]},
                echo("use", "${make[1].value}"),
            ],
            "outputs": {"all": "${make}", "use": "${use.value}"},
        }
    )
    tools.raises["make"] = [None, Impossible("the second"), None]
    task = await engine.start(plan)
    await ended(engine, task)
    assert [(pause.type, pause.step) for pause in task.pauses] == [("toolError", "make[1]")]
    await task.pauses[0].retry()
    await ended(engine, task)
    assert task.outputs == {"all": [{"value": 1}, {"value": 2}, {"value": 3}], "use": 2}
    assert tools.calls["make"] == 4


async def test_a_retry_may_be_put_off(engine: TestEngine, tools: Tools) -> None:
    tools.raises["make"] = [Transient("busy"), None]
    task = await engine.start(PLAN)
    await engine.clock.advance("1ms")
    at = datetime.fromtimestamp(engine.clock.now() / 1000, UTC) + timedelta(hours=1)
    await (await task.refresh()).pauses[0].retry(at=at)
    await engine.clock.advance("59m")
    await engine.crash()
    assert (tools.calls["make"], (await task.refresh()).steps["make"].phase) == (1, "retry_wait")  # type: ignore[index]
    await engine.clock.advance("2m")
    assert ((await task.refresh()).status, tools.calls["make"]) == ("completed", 2)


async def test_the_judge_agrees_on_a_file(tools: Tools, tmp_path: Path) -> None:
    tools.raises["make"] = [Impossible("not yet"), None]
    store = tmp_path / "everstep.db"
    async with Engine(store, tools=tools.all()) as engine:
        for answer in ("run_producer", "supply_output"):
            tools.raises["make"] = [Impossible("not yet"), None]
            task = await engine.start(PLAN)
            await task.result(on_pause="return")
            await (await task.refresh()).pauses[0].skip()
            await (await task.refresh()).result(on_pause="return")
            (pause,) = (await task.refresh()).pauses
            await (pause.run_producer() if answer == "run_producer" else pause.supply_output({"value": 1}))
            assert (await task.result()).outputs == {"last": 1}
    assert [violation._asdict() for violation in checker.check(store)] == []


BLAMED = {
    StepStatus.FAILED: True,
    StepStatus.SKIPPED: True,
    StepStatus.PAUSED: True,
    StepStatus.RUNNING: True,
    StepStatus.COMPLETED: False,
}
"""Whether the producer is to blame, by how it stands; one that completed gave something, but not what was named."""


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("status", BLAMED, ids=str)
def test_who_is_to_blame_follows_from_how_the_producer_stands(status: StepStatus) -> None:
    history = History(plan(step("make", bind="made"), step("use", arguments={"x": "${made.field}"})))
    producer = history.state.steps[StepPath("make")]
    producer.status, producer.output = status, sealed({"other": 1})
    graph = wire_plan(history.state.plan)
    gap = resolve(graph.by_id["use"].arguments, StateScope(history.state, graph))
    assert isinstance(gap, Unresolved)
    asked: list[Any] = []
    lap: Any = SimpleNamespace(
        state=history.state, graph=graph, in_final=False, pause=lambda _path, reason, **_: asked.append(reason)
    )
    hinder.unresolved(lap, history.state.steps[StepPath("use")], gap, gap.argument)
    lacks = UnresolvedDependency(
        blocked_step=StepPath("use"),
        missing_output="made",
        producing_step=StepPath("make"),
        suggested_tool="some.tool",
    )
    broken = UnresolvableParams(blocked_step=StepPath("use"), missing_param="x", suggested_tool="some.tool")
    assert asked == [lacks if BLAMED[status] else broken]
