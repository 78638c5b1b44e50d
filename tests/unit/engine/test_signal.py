"""A step that waits for a signal hears it exactly once: sent before, meanwhile, twice, or around a crash."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.errors import LimitExceeded, PlanError, Validation
from everstep.domain.ids import Instant, Seq
from everstep.domain.signal import Listener, Signal
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.testing.engine import TestEngine
from everstep.wire.signal import heard
from tests.unit.engine.plans import Tools

DAY_MS = 86_400_000


@pytest.fixture
async def engine(tools: Tools, tmp_path: Path) -> AsyncIterator[TestEngine]:
    config: dict[str, JsonValue] = {"engine": {"tasks": 2}}
    async with TestEngine(tools.all(), workspace=tmp_path, config=config) as opened:
        yield opened
        assert await opened.store.check() == []


def waits(key: str | None = "order-1", **more: JsonValue) -> JsonObject:
    arguments: JsonObject = {"event": "paid", **({} if key is None else {"key": key}), **more}
    return {"id": "w", "tool": "wait", "with": arguments}


def plan(*steps: JsonObject, **keys: JsonValue) -> Plan:
    return Plan.from_dict({"name": "p", "steps": list(steps), "outputs": {"got": "${w}"}, **keys})


async def ends(engine: TestEngine, task: Task) -> JsonValue:
    await engine.clock.advance("1s")
    result = await asyncio.wait_for(task.result(on_pause="return"), 60)
    assert result.status == "completed", result.error
    return result.outputs["got"] if result.outputs else None


async def told(engine: TestEngine, task: Task) -> list[bytes]:
    events = [event async for event in engine.desk.events(task.task_id, Seq(0), follow=False)]
    return [event.encoded for event in events if event.type == "step.completed"]


async def test_a_signal_ends_every_wait_for_it_and_no_other(engine: TestEngine) -> None:
    tasks = [await engine.start(plan(waits()), {}) for _ in range(5)]
    other = await engine.start(plan(waits("order-2")))
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1", {"amount": 12}) == 5
    for one in tasks:
        got = await ends(engine, one)
        assert isinstance(got, dict)
        assert (got["event"], got["key"], got["data"]) == ("paid", "order-1", {"amount": 12})
    await other.refresh()
    assert other.status == "running"


async def test_a_signal_that_came_before_is_for_the_first_who_waits(engine: TestEngine) -> None:
    assert await engine.signal("paid", "order-1", 1) == 0
    first = await engine.start(plan(waits()))
    assert (await ends(engine, first))["data"] == 1  # type: ignore[call-overload,index]
    second = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1", 2) == 1
    assert (await ends(engine, second))["data"] == 2  # type: ignore[call-overload,index]


async def test_too_early_is_too_early(engine: TestEngine) -> None:
    await engine.signal("paid", "order-1")
    await engine.clock.advance("25h")
    task = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    await task.refresh()
    assert task.status == "running"


async def test_the_same_id_does_nothing_twice(engine: TestEngine) -> None:
    one = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1", 1, id="s-1") == 1
    await ends(engine, one)
    two = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1", 1, id="s-1") == 1, "as it was told before"
    await two.refresh()
    assert two.status == "running"


async def test_without_a_key_a_step_waits_for_its_task(engine: TestEngine) -> None:
    one, two = await engine.start(plan(waits(None))), await engine.start(plan(waits(None)))
    await engine.clock.advance("1s")
    assert await engine.signal("paid", one.id) == 1
    await ends(engine, one)
    assert await engine.signal("paid") == 1
    await ends(engine, two)


async def test_it_came_in_the_senders_name_and_is_not_trusted(engine: TestEngine) -> None:
    task = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    await engine.signal("paid", "order-1")
    await ends(engine, task)
    (line,) = await told(engine, task)
    assert b'"actor":{"kind":"human","id":"local","via":"python"}' in line
    assert b'"via":"signal"' in line
    assert b'"untrusted":true' in line


async def test_past_its_time_the_step_has_failed(engine: TestEngine) -> None:
    task = await engine.start(plan(waits(timeout="10m")))
    rescued = await engine.start(plan({**waits("order-2", timeout="10m"), "fallback": [{"value": {"data": "none"}}]}))
    await engine.clock.advance("11m")
    result = await asyncio.wait_for(task.result(), 60)
    assert (result.status, result.error and result.error["code"]) == ("failed", "wait_timeout")
    assert await ends(engine, rescued) == {"data": "none"}
    assert await engine.signal("paid", "order-1") == 0, "nobody waits any more"
    late = await engine.start(plan(waits()))
    assert await ends(engine, late), "and it is not lost"


@pytest.mark.req("X.8")
async def test_a_crash_between_the_signal_and_its_step_loses_nothing(engine: TestEngine) -> None:
    task = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    at = Instant(engine.clock.now())
    output = heard("paid", "order-1", 7, at)
    signal = Signal(id="s-1", owner="local", event="paid", key="order-1", at=at, actor=engine.who.actor, output=output)
    kept = await engine.store.signals.keep(signal, Instant(at - DAY_MS))  # and here the process dies
    assert [one.task for one in kept.listeners] == [task.id]
    await engine.crash()
    task = await engine.get(task.id)
    assert (await ends(engine, task))["data"] == 7  # type: ignore[call-overload,index]
    assert len(await told(engine, task)) == 1


@pytest.mark.req("X.8")
async def test_a_signal_after_a_crash_is_heard(engine: TestEngine) -> None:
    task = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    await engine.crash(down="2h")
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1") == 1
    await ends(engine, await engine.get(task.id))


@pytest.mark.req("X.8")
async def test_who_waits_takes_no_place(engine: TestEngine, tools: Tools) -> None:
    """`engine.tasks = 2`, and 200 tasks that wait."""
    waiting = [await engine.start(plan(waits()), key=f"k{number}") for number in range(200)]
    await engine.clock.advance("1m")
    busy = await engine.start(
        Plan.from_dict({"name": "b", "steps": [{"id": "w", "tool": "test.echo", "with": {"value": 1, "label": "w"}}]})
    )
    await engine.clock.advance("1s")
    assert (await asyncio.wait_for(busy.result(), 60)).status == "completed"
    assert await engine.signal("paid", "order-1") == 200
    for one in waiting:
        await ends(engine, one)


def nested(depth: int) -> JsonObject:
    inner: JsonObject = {"id": "w", "tool": "test.echo", "with": {"value": 1, "label": "deep"}}
    for level in range(depth):
        inner = {"id": "w", "tool": "plan.run", "with": {"plan": {"name": f"level-{level}", "steps": [inner]}}}
    return inner


@pytest.mark.req("X.8")
async def test_parents_that_wait_do_not_starve_their_children(engine: TestEngine, tools: Tools) -> None:
    """Ten of them, four tasks deep, with two places and fifty others that wait; over a crash."""
    for number in range(50):
        await engine.start(plan(waits(f"order-{number}")), key=f"k{number}")
    deep = Plan.from_dict({"name": "deep", "steps": [nested(4)]})
    deep.trusted = True
    parents = [await engine.start(deep, key=f"d{number}") for number in range(10)]
    await engine.clock.advance("1s")
    await engine.crash()
    async with asyncio.timeout(30):
        for one in parents:
            task = await engine.get(one.id)
            while task.status != "completed":
                await asyncio.sleep(0.001)  # plans are read in a thread
                await engine.clock.advance("1s")
                await task.refresh()
    assert tools.calls["deep"] == 10


async def test_a_paused_task_hears_it_and_goes_on_later(engine: TestEngine, tools: Tools) -> None:
    after: JsonObject = {"id": "next", "tool": "test.echo", "with": {"value": 1, "label": "next"}}
    task = await engine.start(plan(waits(), after))
    await engine.clock.advance("1s")
    await task.pause()
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1") == 1
    await engine.clock.advance("1s")
    await task.refresh()
    assert (task.status, tools.calls["next"]) == ("paused", 0)
    await task.resume()
    await ends(engine, task)


async def test_a_cancelled_task_waits_no_longer(engine: TestEngine) -> None:
    task = await engine.start(plan(waits()))
    await engine.clock.advance("1s")
    await task.cancel()
    await engine.clock.advance("1s")
    assert await engine.signal("paid", "order-1") == 0


@pytest.mark.parametrize("arguments", [{}, {"for": "1s", "event": "e"}, {"for": "1s", "key": "k"}])
async def test_a_wait_is_for_one_thing(engine: TestEngine, arguments: JsonObject) -> None:
    task = await engine.start(plan({"id": "w", "tool": "wait", "with": arguments}))
    await engine.clock.advance("1s")
    result = await asyncio.wait_for(task.result(on_pause="return"), 60)
    assert result.error is not None
    assert result.error["category"] == "configuration"


async def test_the_name_of_an_event_is_checked_with_the_plan(engine: TestEngine) -> None:
    with pytest.raises(PlanError):
        await engine.start(plan({"id": "w", "tool": "wait", "with": {"event": "e e"}}))


@pytest.mark.parametrize("event", ["", "a b", "x" * 129, "ä"])
async def test_what_a_signal_may_be_called(engine: TestEngine, event: str) -> None:
    with pytest.raises(Validation):
        await engine.signal(event)
    with pytest.raises(Validation):
        await engine.signal("e", event)


async def test_a_signal_is_bounded(engine: TestEngine) -> None:
    with pytest.raises(LimitExceeded):
        await engine.signal("e", data="x" * 300_000)


async def test_a_signal_that_comes_while_its_step_looks_again_is_heard(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks and finds nothing has not lost what was told meanwhile."""
    beside: JsonObject = {"id": "beside", "tool": "test.hold", "needs": []}
    after: JsonObject = {"id": "after", "tool": "test.echo", "needs": ["w"]}
    task = await engine.start(plan(waits(), beside, after, parallel=2))
    await engine.clock.advance("1s")
    listen = engine.store.signals.listen

    async def find_nothing(listener: Listener, since: Instant) -> Signal | None:
        found = await listen(listener, since)
        monkeypatch.undo()
        assert await engine.signal("paid", "order-1", 7) == 1
        return found

    monkeypatch.setattr(engine.store.signals, "listen", find_nothing)
    engine.desk._runtime.loop.nudge(task.task_id)
    await engine.clock.advance("1s")
    assert tools.calls["echo"] == 1
    tools.release.set()
    assert (await ends(engine, task))["data"] == 7  # type: ignore[call-overload,index]


async def test_who_asks_while_the_walk_tidies_up_gets_the_result(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is told, and the walk still leaves the list of those who listen: nobody waits for a second end."""
    signals = engine.store.signals
    listen, leave, tidying, go_on = signals.listen, signals.leave, asyncio.Event(), asyncio.Event()

    async def find_nothing(listener: Listener, since: Instant) -> Signal | None:
        found = await listen(listener, since)
        assert await engine.signal("paid", "order-1", 7) == 1
        return found

    async def slowly(listener: Listener) -> None:
        tidying.set()
        await go_on.wait()
        await leave(listener)

    monkeypatch.setattr(signals, "listen", find_nothing)
    monkeypatch.setattr(signals, "leave", slowly)
    task = await engine.start(plan(waits()))
    await asyncio.wait_for(tidying.wait(), 60)
    assert task.status != "completed", "an old view"
    assert (await asyncio.wait_for(task.result(), 60)).status == "completed"
    go_on.set()
