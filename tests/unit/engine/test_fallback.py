"""Fallbacks on the real engine: which tool, with which key, seeing what, and what is written down."""

import asyncio
from typing import Any

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.ports.tool import Impossible, Misconfigured, Transient, Uncertain
from everstep.testing.engine import TestEngine
from everstep.testing.fakes import Fake, fake
from tests.unit.engine.plans import plan_of


def step(**keys: JsonValue) -> JsonObject:
    return {"id": "a", "tool": "first.tool", "with": {"q": 1}, **keys}


async def finish(engine: TestEngine, task: Task, after: str = "20m", *, on_pause: str = "return") -> Result:
    waiting = asyncio.create_task(task.result(on_pause=on_pause))
    await engine.clock.advance(after)
    return await asyncio.wait_for(waiting, 60)


async def events(task: Task, *types: str) -> list[dict[str, Any]]:
    return [dict(event.data) async for event in task.events(follow=False) if event.type in types]


def broken(effect: str = "pure", error: Exception | None = None) -> Fake:
    return fake(raises=error or Misconfigured("no such search"), effect=effect)


@pytest.mark.req("8.6", "W.4", "TR.3", "DoD.4")
async def test_fallbacks_are_tried_in_order_and_written_down() -> None:
    tools = {"first.tool": broken(), "second.tool": broken(), "third.tool": fake(returns={"hits": 3}, effect="pure")}
    others: JsonValue = [{"tool": "second.tool", "with": {"why": "${error.code}"}}, {"tool": "third.tool"}]
    async with TestEngine(tools) as engine:
        task = await engine.start(plan_of(step(fallback=others), outputs={"n": "${a.hits}"}))
        result = await finish(engine, task)
        assert result.outputs == {"n": 3}
        assert [
            (one["tool_requested"], one["tool_used"], one["reason"]) for one in await events(task, "step.fallback")
        ] == [
            ("first.tool", "second.tool", "tool_misconfigured"),
            ("second.tool", "third.tool", "tool_misconfigured"),
        ]
        (done,) = await events(task, "step.completed")
        assert (done["via"], done["tool_used"]) == ("fallback", "third.tool")
        assert tools["second.tool"].calls[0].arguments == {"why": "tool_misconfigured"}
        keys = {one["idempotency_key"] for one in await events(task, "attempt.started")}
        assert len(keys) == 3, "every fallback is a new logical try"


async def test_a_literal_is_the_last_resort() -> None:
    tools = {"first.tool": broken()}
    async with TestEngine(tools) as engine:
        plan = plan_of(step(fallback=[{"value": {"hits": 0, "why": "${error.message}"}}]), outputs={"a": "${a}"})
        task = await engine.start(plan)
        result = await finish(engine, task)
        assert (result.status, result.outcome) == ("completed", "success")
        assert result.outputs == {"a": {"hits": 0, "why": "no such search"}}
        (done,) = await events(task, "step.completed")
        assert (done["via"], done["tool_used"], done["attempt"]) == ("literal", None, None)


@pytest.mark.req("8.6")
async def test_all_down_then_the_plan_asks_and_skip_goes_on() -> None:
    tools = {"first.tool": broken(), "second.tool": broken(), "last.tool": fake(returns=1, effect="pure")}
    async with TestEngine(tools) as engine:
        plan = plan_of(
            step(fallback=[{"tool": "second.tool"}], on_error="pause"), {"id": "b", "tool": "last.tool", "with": {}}
        )
        task = await engine.start(plan)
        assert (await finish(engine, task)).status == "paused"
        pause = engine.inbox.only()
        assert pause.type == "toolError"
        await pause.skip()
        assert (await finish(engine, task, on_pause="wait")).status == "completed"
        assert tools["last.tool"].count == 1


async def test_a_fallback_has_retries_of_its_own() -> None:
    tools = {
        "first.tool": broken(error=Transient("later")),
        "second.tool": fake(raises=[Transient("later"), Transient("later"), None], returns=1, effect="pure"),
    }
    others: JsonValue = [{"tool": "second.tool", "retry": 2}]
    async with TestEngine(tools) as engine:
        result = await finish(engine, await engine.start(plan_of(step(retry=1, fallback=others))))
        assert result.status == "completed"
        assert (tools["first.tool"].count, tools["second.tool"].count) == (2, 3)


@pytest.mark.parametrize(
    ("effect", "error", "falls_back"),
    [
        ("pure", Uncertain("who knows"), True),
        ("idempotent", Uncertain("who knows"), False),
        ("once", Impossible("no", effect_state="made"), False),
        ("pure", Impossible("no", effect_state="made"), True),
        ("once", Impossible("no"), True),
    ],
)
async def test_after_a_call_that_may_have_acted_only_a_pure_one_is_replaced(
    effect: str, error: Exception, falls_back: bool
) -> None:
    tools = {"first.tool": broken(effect, error), "second.tool": fake(returns=1, effect="pure")}
    async with TestEngine(tools) as engine:
        await finish(engine, await engine.start(plan_of(step(retry=0, fallback=[{"tool": "second.tool"}]))))
        assert tools["second.tool"].count == falls_back


async def test_every_item_has_its_own_fallback() -> None:
    tools = {
        "first.tool": fake(raises=[None, Misconfigured("no"), None], returns={"n": 1}, effect="pure"),
        "second.tool": fake(returns={"n": 2}, effect="pure"),
    }
    others: JsonValue = [{"tool": "second.tool", "with": {"item": "${item}"}}]
    each = step(for_each=[7, 8, 9], fallback=others) | {"with": {"item": "${item}"}}
    async with TestEngine(tools) as engine:
        result = await finish(engine, await engine.start(plan_of(each, outputs={"all": "${a}"})))
        assert result.outputs == {"all": [{"n": 1}, {"n": 2}, {"n": 1}]}
        assert tools["second.tool"].calls[0].arguments == {"item": 8}


@pytest.mark.req("2.6")
async def test_a_step_that_the_plan_can_do_without_is_left_out_where_nobody_is_there() -> None:
    """Refused connections, then an open breaker, then a tool that is gone; who needs it is left out too."""
    down = fake(raises=ConnectionRefusedError("refused"), effect="pure")
    steps: list[JsonValue] = [
        {"id": "find", "tool": "web.find", "on_error": "continue", "retry": {"times": 4, "delay": "10ms"}},
        {"id": "use", "tool": "web.use", "with": {"hits": "${find}"}},
        {"id": "rest", "tool": "web.use", "with": {"hits": [1]}, "needs": []},
    ]
    plan = Plan.from_dict({"name": "p", "steps": steps})
    engine = TestEngine({"web.find": down, "web.use": fake(returns=1)})
    async with engine:
        first = await ended(engine, await engine.start(plan))
        assert down.count == 5
        second = await ended(engine, await engine.start(plan))
        assert down.count == 5, "its breaker is open"
        await engine.desk.halt(engine.who, None, "graceful")
        waiting = await engine.start(plan)
        await engine.close()
        engine._fakes = {"web.use": fake(returns=1)}
        await engine.open()
        await engine.desk.lift_halt()
        third = await ended(engine, await engine.get(waiting.id))
        for result in (first, second, third):
            assert (result.status, result.outcome) == ("completed", "partial")
            assert [(one.step, one.status, one.reason) for one in result.issues] == [
                ("find", "skipped", "tool_unavailable: web.find"),
                ("use", "skipped", "upstream"),
            ]
        assert await engine.store.check() == []


async def ended(engine: TestEngine, task: Task) -> Result:
    waiting = asyncio.create_task(task.result())
    await engine.clock.advance("5s")
    return await asyncio.wait_for(waiting, 60)


async def test_a_crash_in_a_fallback_goes_on_with_that_fallback() -> None:
    tools = {"first.tool": broken(), "second.tool": fake(returns=2, delay="10s", effect="pure")}
    async with TestEngine(tools) as engine:
        task = await engine.start(plan_of(step(fallback=[{"tool": "second.tool"}]), outputs={"a": "${a}"}))
        await engine.clock.advance("1s")
        await engine.crash()
        result = await finish(engine, await engine.get(task.id))
        assert result.outputs == {"a": 2}
        assert (tools["first.tool"].count, tools["second.tool"].count) == (1, 2)
        assert len({call.key for call in tools["second.tool"].calls}) == 1


async def test_arguments_that_do_not_fit_fall_back_too() -> None:
    plan = plan_of(
        {"id": "a", "tool": "text.join", "with": {"texts": "${inputs.items}"}, "fallback": [{"value": {"text": "-"}}]},
        inputs={"items": {"type": "array"}},
        outputs={"a": "${a.text}"},
    )
    async with TestEngine() as engine:
        task = await engine.start(plan, {"items": [{"no": "text"}]})
        assert (await finish(engine, task)).outputs == {"a": "-"}
        (other,) = await events(task, "step.fallback")
        assert other["reason"] == "invalid_arguments"


async def test_a_fallback_never_uses_the_approval_of_what_it_replaces() -> None:
    tools = {"first.tool": broken("once", Impossible("no")), "second.tool": fake(returns=2, effect="pure")}
    async with TestEngine(tools) as engine:
        task = await engine.start(
            plan_of(step(approve="Really?", fallback=[{"tool": "second.tool", "with": {"q": 1}}]))
        )
        await engine.clock.advance("1ms")
        await engine.inbox.only().approve()
        assert (await finish(engine, task, on_pause="wait")).status == "completed"
        first, second = await events(task, "attempt.started")
        assert (first["tool"], bool(first["approval"])) == ("first.tool", True)
        assert (second["tool"], second["approval"]) == ("second.tool", None)
