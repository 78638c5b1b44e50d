"""Pauses that run out, in virtual time: warned a tenth before, then what was said would follow; over restarts too."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.ids import StepPath
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.testing.engine import TestEngine
from tests.unit.engine.test_approvals import World, events, over, plan_of, settled


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def engine(world: World) -> AsyncIterator[TestEngine]:
    async with TestEngine(world.tools()) as opened:
        yield opened
        assert await opened.store.check() == [], "rows follow from journals"


async def timeline(task: Task) -> list[str]:
    return [event.type async for event in task.events(follow=False) if event.type.startswith("pause.")]


def asking(on_timeout: str, within: str = "100s", **more: JsonValue) -> JsonObject:
    return {"title": "Send?", "within": within, "on_timeout": on_timeout, **more}


@pytest.mark.req("W.2")
async def test_nobody_answers_in_time(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of(asking("reject"))))
    await settled(engine, task, "89s")
    assert await timeline(task) == ["pause.opened"]
    await settled(engine, task, "2s")
    assert await timeline(task) == ["pause.opened", "pause.expiring"], "at least a tenth before"
    task = await settled(engine, task, "10s")
    assert (task.status, world.sent, engine.inbox.all) == ("failed", [], [])
    assert task.error is not None
    assert task.error["code"] == "approval_rejected"
    (expired,) = await events(task, "pause.expired")
    assert expired["action"] == "reject"
    who = [event.actor async for event in task.events(follow=False) if event.type == "pause.expired"]
    assert (who[0]["kind"], who[0]["via"]) == ("system", "engine")


async def test_an_answer_in_time_is_an_answer(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of(asking("reject"))), "95s")
    await engine.inbox.only().approve()
    task = await settled(engine, task, "1h")
    assert (task.status, len(world.sent)) == ("completed", 1)
    assert await timeline(task) == ["pause.opened", "pause.expiring", "pause.answered"]


async def test_wait_warns_and_goes_on_waiting(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of(asking("wait"))), "10h")
    assert (task.status, await timeline(task)) == ("paused", ["pause.opened", "pause.expiring"])
    await engine.inbox.only().approve()
    assert (await settled(engine, task)).status == "paused", "what was allowed too late is asked anew"


async def test_silence_may_approve_what_can_be_repeated(engine: TestEngine, world: World) -> None:
    wipe: JsonObject = {"tool": "disk.wipe", "with": {"path": "x"}}
    task = await settled(engine, await engine.start(plan_of(asking("approve"), **wipe)), "101s")
    assert (task.status, world.sent) == ("completed", [("wipe", "x")])
    (started,) = await events(task, "attempt.started")
    (expired,) = await events(task, "pause.expired")
    assert started["approval"] == expired["pause"]


async def test_all_items_run_out_together(engine: TestEngine, world: World) -> None:
    plan = over(["a", "b"])
    task = await settled(engine, await engine.start(plan, pause_timeout="100s"), "3h")
    assert (task.status, world.sent) == ("cancelled", [])


@pytest.mark.req("4.4")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("action", "status"), [("cancel", "cancelled"), ("resume", "completed")])
async def test_a_task_is_paused_too_long(world: World, action: str, status: str, *, restart: bool) -> None:
    config: JsonObject = {"engine": {"on_pause_timeout": action}}
    async with TestEngine(world.tools(), config=config) as engine:
        await engine.desk.halt(engine.who, None)
        task = await engine.start(plan_of(None) if action == "resume" else plan_of(), pause_timeout="5s")
        await task.pause(note="lunch")
        await engine.desk.lift_halt()
        await settled(engine, task, "3s")
        if restart:
            await engine.crash()
        task = await settled(engine, await engine.get(task.id), "1600ms")
        assert task.status == "paused"
        assert (await timeline(task))[-1] == "pause.expiring"
        if restart:
            await engine.crash()
        task = await settled(engine, await engine.get(task.id), "1s")
        assert task.status == status
        assert "pause.expired" in await timeline(task)
        if action == "cancel":
            (ended,) = await events(task, "task.cancelled")
            assert ended["reason"] == "pause_timeout"
        assert await engine.store.check() == []


@pytest.mark.req("4.4")
async def test_where_nobody_was_there_to_warn_the_action_waits_after_the_warning(world: World) -> None:
    async with TestEngine(world.tools()) as engine:
        task = await settled(engine, await engine.start(plan_of(asking("reject"))))
        await engine.crash(down="10h")
        task = await settled(engine, await engine.get(task.id), "9s")
        assert (task.status, await timeline(task)) == ("paused", ["pause.opened", "pause.expiring"])
        task = await settled(engine, task, "2s")
        assert task.status == "failed"


@pytest.mark.req("4.4")
async def test_a_person_pauses_for_a_day_at_most_and_questions_wait_for_ever(engine: TestEngine, world: World) -> None:
    asks = await settled(engine, await engine.start(plan_of()))
    other = await settled(engine, await engine.start(over(["a"])))
    await other.pause()
    asks = await settled(engine, asks, "25h")
    assert (asks.status, (await other.refresh()).status) == ("paused", "cancelled")


async def test_a_pause_that_runs_out_beside_a_question_leaves_the_question(world: World) -> None:
    config: JsonObject = {"engine": {"on_pause_timeout": "resume"}}
    async with TestEngine(world.tools(), config=config) as engine:
        task = await settled(engine, await engine.start(plan_of()))
        await task.pause()
        task = await settled(engine, task, "25h")
        assert (task.status, engine.inbox.only().type) == ("paused", "approvalRequired")
        await engine.inbox.only().approve()
        assert (await settled(engine, task)).status == "completed"


async def test_a_question_runs_out_while_another_step_is_at_work(engine: TestEngine, world: World) -> None:
    world.holds = asyncio.Event()
    free: JsonObject = {"id": "free", "tool": "mail.post", "with": {"to": "ben"}, "needs": []}
    gated: JsonObject = {
        "id": "gated",
        "tool": "disk.wipe",
        "with": {"path": "x"},
        "needs": [],
        "approve": asking("reject", on_reject="skip"),
    }
    plan = Plan.from_dict({"name": "p", "parallel": 2, "steps": [free, gated]})
    task = await settled(engine, await engine.start(plan), "101s")
    assert (task.status, task.steps[StepPath("gated")].status) == ("running", "skipped")
    world.holds.set()
    task = await settled(engine, task)
    assert (task.status, task.outcome, world.sent) == ("completed", "partial", [("ben", "hello")])


async def test_finally_is_done_when_a_task_is_paused_too_long(engine: TestEngine, world: World) -> None:
    steps: list[JsonValue] = [
        {"id": "first", "tool": "mail.post", "with": {"to": "ana"}},
        {"id": "second", "tool": "mail.post", "with": {"to": "ben"}, "approve": True},
    ]
    last: list[JsonValue] = [{"id": "tidy", "tool": "mail.post", "with": {"to": "eve"}}]
    plan = Plan.from_dict({"name": "p", "steps": steps, "finally": last})
    plan.trusted = True
    task = await settled(engine, await engine.start(plan, pause_timeout="10s"), "1m")
    assert (task.status, [to for to, _ in world.sent]) == ("cancelled", ["ana", "eve"])
    (ended,) = await events(task, "task.cancelled")
    assert ended["reason"] == "pause_timeout"
