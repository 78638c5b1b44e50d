"""Limits of a task: told at 80 %, asked about when used up, counted through pauses, failures and crashes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Plan, tool
from everstep.domain.errors import Conflict, PlanError, Validation
from everstep.domain.ids import Instant
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.accept import Wish
from everstep.facade.runnable import as_plan
from everstep.facade.task import Task
from everstep.facade.views import Event
from everstep.ports.tool import Ctx, Transient
from everstep.testing.engine import TestEngine
from everstep.torture import checker
from tests.unit.engine.plans import Tools


class Priced:
    """A tool that reports what it costs, and may fail after that."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = 0

    def all(self) -> list[object]:
        @tool("priced.ask", effect="pure")
        async def ask(name: str = "", cost: float = 1.0, *, ctx: Ctx) -> str:
            """Costs so much."""
            self.calls.append(name)
            ctx.usage(cost=cost / 2, tokens_in=3)
            ctx.usage(cost=cost / 2, pages=2)
            if self.fails:
                self.fails -= 1
                raise Transient("after it was paid")
            return "x" * 98

        return [ask]


@pytest.fixture
def priced() -> Priced:
    return Priced()


@pytest.fixture
async def engine(priced: Priced, tools: Tools) -> AsyncIterator[TestEngine]:
    async with TestEngine([*priced.all(), *tools.all()]) as opened:
        yield opened
        assert await opened.store.check() == [], "rows follow from journals"


def asks(count: int, **keys: Any) -> list[JsonObject]:
    return [{"id": f"s{n}", "tool": "priced.ask", "with": {"name": f"s{n}"}, **keys} for n in range(count)]


def plan_of(steps: list[JsonObject], **keys: JsonValue) -> Plan:
    return Plan.from_dict({"name": "p", "steps": [*steps], **keys})


async def told(task: Task, *types: str) -> list[Event]:
    return [event async for event in task.events(follow=False) if event.type in types]


async def still(engine: TestEngine, task: Task, after: str = "1m") -> Task:
    await engine.clock.advance(after)
    return await task.refresh()


LIMITS = {"calls": {"calls": 5}, "cost": {"cost": 5}, "output": {"output": "500B"}}


@pytest.mark.parametrize("limit", list(LIMITS))
async def test_a_limit_is_told_asked_about_and_raised(engine: TestEngine, priced: Priced, limit: str) -> None:
    task = await engine.start(plan_of(asks(8), limits=LIMITS[limit]))  # type: ignore[arg-type]
    await still(engine, task)
    assert (task.status, len(priced.calls)) == ("paused", 5)
    (near,) = await told(task, "task.limit_near")
    used = 400 if limit == "output" else 4
    assert near.data == {"limit": limit, "used": used, "max": used / 4 * 5}
    (pause,) = task.pauses
    assert (pause.type, pause.answers) == ("limitReached", ("raise_limit", "cancel"))
    with pytest.raises(Conflict, match="waits for an answer"):
        await task.resume()
    for wrong in (5, 0, "more", True, None, 1e308, float("inf"), float("nan")):
        with pytest.raises(Validation):
            await pause.raise_limit(wrong if limit != "output" or wrong != 5 else 500)  # type: ignore[arg-type]
    await engine.crash()
    task = await engine.get(task.id)
    await task.pauses[0].raise_limit(700 if limit == "output" else 7)
    await still(engine, task)
    assert (task.status, len(priced.calls)) == ("paused", 7)
    await task.pauses[0].raise_limit(10_000)
    await still(engine, task)
    assert (task.status, len(priced.calls)) == ("completed", 8)
    assert [event.data["limit"] for event in await told(task, "task.limit_near")].count(limit) == 1, "once"


async def test_a_task_that_needs_no_more_is_not_asked_about(engine: TestEngine) -> None:
    task = await engine.start(plan_of(asks(5), limits={"calls": 5, "cost": 5, "output": "500B"}))
    assert (await still(engine, task)).status == "completed"
    assert len(await told(task, "task.limit_near")) == 3


async def test_calls_that_begin_together_count_together(engine: TestEngine, priced: Priced) -> None:
    task = await engine.start(plan_of(asks(6, needs=[]), parallel=4, limits={"calls": 3}))
    await still(engine, task)
    assert (task.status, len(priced.calls)) == ("paused", 3)


async def test_a_failed_attempt_costs_too(engine: TestEngine, priced: Priced) -> None:
    priced.fails = 2
    task = await engine.start(plan_of(asks(2), limits={"cost": 3}))
    await still(engine, task, "10m")
    assert (task.status, len(priced.calls)) == ("paused", 3)
    failed = await told(task, "attempt.failed")
    usage = failed[0].data["usage"]
    assert isinstance(usage, dict)
    assert {name: usage[name] for name in ("cost", "tokens_in", "counts")} == {
        "cost": 1.0,
        "tokens_in": 3,
        "counts": {"pages": 2},
    }


async def test_a_plan_may_rather_fail_and_tidies_up_first(engine: TestEngine, priced: Priced, tools: Tools) -> None:
    final: JsonObject = {"id": "z", "tool": "test.echo", "with": {"label": "z"}}
    task = await engine.start(plan_of(asks(3), limits={"calls": 1, "on_reached": "fail"}, **{"finally": [final]}))  # type: ignore[arg-type]
    await still(engine, task)
    assert (task.status, len(priced.calls), tools.calls["z"]) == ("failed", 1, 1)
    assert task.error is not None
    assert task.error["code"] == "limit_calls"


async def test_time_stands_still_while_paused_and_counts_while_it_runs(engine: TestEngine, tools: Tools) -> None:
    steps: list[JsonObject] = [
        {"id": "a", "tool": "wait", "with": {"for": "50m"}},
        {"id": "b", "tool": "test.echo", "with": {"label": "b"}},
        {"id": "c", "tool": "wait", "with": {"for": "20m"}},
        {"id": "d", "tool": "test.echo", "with": {"label": "d"}},
    ]
    task = await engine.start(plan_of(steps, limits={"wall_time": "1h"}))
    await still(engine, task, "10m")
    await task.pause()
    await still(engine, task, "30m")
    assert (await task.refresh()).status == "paused"
    await task.resume()
    await still(engine, task, "25m")
    assert tools.calls == {"b": 1}, "ten minutes, and then ten more: the wait is over"
    await still(engine, task, "1h")
    assert (task.status, tools.calls) == ("completed", {"b": 1, "d": 1})


async def test_time_that_is_used_up_is_asked_about_before_the_next_call(engine: TestEngine, tools: Tools) -> None:
    steps: list[JsonObject] = [
        {"id": "a", "tool": "wait", "with": {"for": "90m"}},
        {"id": "b", "tool": "test.echo", "with": {"label": "b"}},
    ]
    task = await engine.start(plan_of(steps, limits={"wall_time": "1h"}))
    await still(engine, task, "2h")
    (pause,) = task.pauses
    assert (task.status, pause.type, tools.calls) == ("paused", "limitReached", {})
    await pause.raise_limit(3 * 3600)
    assert (await still(engine, task)).status == "completed"


async def start(engine: TestEngine, plan: Plan, **more: Any) -> Task:
    loaded = as_plan(plan)
    wish = Wish(plan=loaded.spec, digest=loaded.digest, inputs={}, trusted=True)
    return Task(engine.desk, engine._who, await engine.desk.submit(replace(wish, **more), engine._who))


async def test_a_deadline_ends_the_task_and_stands_still_while_paused(engine: TestEngine, tools: Tools) -> None:
    deadline = Instant(engine.clock.now() + 60_000)
    hold: JsonObject = {"id": "a", "tool": "test.hold", "with": {"label": "a"}}
    waits: JsonObject = {"id": "w", "tool": "wait", "with": {"for": "1h"}}
    in_call = await start(engine, plan_of([hold, *asks(1)]), deadline=deadline)
    waiting = await start(engine, plan_of([waits]), deadline=deadline)
    paused = await start(engine, plan_of([waits]), deadline=deadline)
    await engine.clock.advance("30s")
    await paused.pause()
    await engine.clock.advance("5m")
    assert ((await waiting.refresh()).status, (await paused.refresh()).status) == ("failed", "paused")
    assert waiting.error is not None
    assert waiting.error["code"] == "deadline"
    assert (await in_call.refresh()).status == "running", "what is in flight may end"
    tools.release.set()
    await still(engine, in_call, "1ms")
    assert (in_call.status, in_call.steps["a"].status) == ("failed", "completed")  # type: ignore[index]
    await paused.resume()
    assert (await still(engine, paused, "29s")).status == "running"
    assert (await still(engine, paused, "2s")).status == "failed"


async def test_a_retry_begins_with_nothing_used_and_without_the_passed_deadline(
    engine: TestEngine, priced: Priced
) -> None:
    limited = await engine.start(plan_of(asks(3), limits={"calls": 2, "on_reached": "fail"}))
    late = await start(
        engine, plan_of([{"id": "w", "tool": "wait", "with": {"for": "1h"}}]), deadline=Instant(engine.clock.now() + 1)
    )
    await engine.clock.advance("1m")
    assert ((await limited.refresh()).status, (await late.refresh()).status) == ("failed", "failed")
    for task in (limited, late):
        await task.retry()
    await engine.clock.advance("2h")
    assert ((await limited.refresh()).status, (await late.refresh()).status) == ("completed", "completed")
    assert len(priced.calls) == 3


async def test_limits_can_only_be_lowered(engine: TestEngine) -> None:
    plan = plan_of(asks(1), limits={"calls": 100})
    with pytest.raises(Validation, match="calls 101 is above 100"):
        await start(engine, plan, limits={"calls": 101})
    task = await start(engine, plan, limits={"calls": 0})
    assert [pause.type for pause in (await still(engine, task)).pauses] == ["limitReached"]
    with pytest.raises(PlanError) as refused:
        await engine.start(plan_of(asks(1), limits={"cost": 50}))
    assert [problem.code for problem in refused.value.problems] == ["plan.limit_above_policy"]


@pytest.mark.parametrize(
    ("limits", "code"), [({"output": "99B"}, "limit_output"), ({"cost": 0.9}, "limit_cost"), ({"output": "100B"}, None)]
)
async def test_limits_of_one_attempt(engine: TestEngine, limits: JsonObject, code: str | None) -> None:
    for plan in (plan_of(asks(1, limits=limits)), plan_of(asks(1), defaults={"limits": limits})):
        task = await still(engine, await engine.start(plan))
        assert (task.error or {}).get("code") == code
        assert task.status == ("completed" if code is None else "failed")


@pytest.mark.parametrize("key", ["memory", "cpu_time"])
async def test_limits_that_need_a_process_are_refused(engine: TestEngine, key: str) -> None:
    value = "1m" if key == "cpu_time" else "1MB"
    with pytest.raises(PlanError):
        await engine.start(plan_of(asks(1, limits={key: value})))


async def test_what_a_task_writes_is_counted(engine: TestEngine, tmp_path: Path) -> None:
    """Step by step, until the rest does not fit: the call that would go over is refused before its first byte."""
    steps: list[JsonObject] = [
        {"id": f"s{n}", "tool": "file.write", "with": {"path": f"f{n}", "text": "x" * 400}, "retry": 0}
        for n in range(3)
    ]
    async with TestEngine(workspace=tmp_path) as files:
        task = await files.start(plan_of(steps, limits={"disk": "1KB"}))
        assert ((await task.result()).error or {}).get("code") == "limit_disk"
        assert [(tmp_path / f"f{n}").exists() for n in range(3)] == [True, True, False]
        near = [event.data async for event in task.events(follow=False) if event.type == "task.limit_near"]
        assert [(one["limit"], one["used"], one["max"]) for one in near] == [("disk", 800, 1000)]


async def test_time_without_end_is_not_allowed_but_as_much_as_can_be_counted(engine: TestEngine) -> None:
    step: JsonObject = {"id": "a", "tool": "wait", "with": {"for": "2h"}}
    last: JsonObject = {"id": "b", "tool": "test.echo", "with": {"label": "b"}}
    task = await still(engine, await engine.start(plan_of([step, last], limits={"wall_time": "1h"})), "3h")
    with pytest.raises(Validation, match="at most 9007199254740"):
        await task.pauses[0].raise_limit(1e308)
    await task.pauses[0].raise_limit(9_007_199_254_740)
    assert (await still(engine, task)).status == "completed"


@pytest.mark.parametrize("cost", [-1, 1e308])
async def test_a_report_that_is_no_amount_is_the_tools_mistake(engine: TestEngine, cost: float) -> None:
    plan = plan_of([{"id": "a", "tool": "priced.ask", "with": {"cost": cost}}])
    task = await still(engine, await engine.start(plan))
    assert (task.status, (task.error or {}).get("category")) == ("failed", "internal")


async def test_on_a_file_and_the_judge_agrees(priced: Priced, tmp_path: Path) -> None:
    store = tmp_path / "everstep.db"
    async with Engine(store, tools=priced.all()) as engine:
        task = await engine.start(plan_of(asks(6), limits={"cost": 2}), limits={"calls": 4})
        await asyncio.wait_for(task.result(on_pause="return"), 60)
        (pause,) = (await task.refresh()).pauses
        await pause.raise_limit(100)
    async with Engine(store, tools=priced.all()) as engine:
        task = await engine.get(task.id)
        await asyncio.wait_for(task.result(on_pause="return"), 60)
        (pause,) = (await task.refresh()).pauses
        assert pause.title == "The task's limit of calls is reached"
        await pause.raise_limit(100)
        assert (await asyncio.wait_for(task.result(), 60)).status == "completed"
    assert len(priced.calls) == 6
    assert [violation._asdict() for violation in checker.check(store)] == []
