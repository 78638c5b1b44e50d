"""Pauses on request: what is cut off, what is waited for, what is called again; many cycles lose and repeat nothing."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Plan, tool
from everstep.domain.errors import Conflict
from everstep.domain.values import INLINE_BYTES_MAX, JsonObject
from everstep.facade.task import Task
from everstep.facade.views import Event
from everstep.ports.tool import Ctx, Transient
from everstep.testing.engine import TestEngine
from everstep.torture import checker
from tests.unit.engine.plans import Tools

CYCLES = 50


def call(id: str, name: str, **keys: Any) -> JsonObject:
    return {"id": id, "tool": name, "with": {"label": id}, **keys}


def plan_of(*steps: JsonObject, **keys: Any) -> Plan:
    return Plan.from_dict({"name": "p", "steps": list(steps), **keys})


async def told(task: Task, *types: str) -> list[Event]:
    return [event async for event in task.events(follow=False) if event.type in types]


@pytest.mark.req("4.1")
async def test_an_immediate_pause_cuts_a_pure_call_off_and_it_is_called_again_with_its_key(
    engine: TestEngine, tools: Tools
) -> None:
    task = await engine.start(plan_of(call("a", "test.hold")))
    await tools.holding.wait()
    await task.pause("immediate")
    await engine.clock.advance("1ms")
    assert (await task.refresh()).status == "paused"
    (pausing,) = await told(task, "task.pausing")
    assert (pausing.data["mode_used"], pausing.data["waits_for"]) == ("immediate", [])
    (killed,) = await told(task, "attempt.killed")
    assert (killed.data["called"], killed.data["effect_state"]) == (True, "unknown")
    tools.release.set()
    await engine.clock.advance("1h")
    assert tools.calls["a"] == 1, "paused means no call"
    await task.resume()
    assert (await task.result()).status == "completed"
    first, second = await told(task, "attempt.started")
    assert first.data["idempotency_key"] == second.data["idempotency_key"]
    assert await told(task, "step.retry_scheduled") == []


@pytest.mark.req("4.1")
async def test_an_immediate_pause_waits_for_what_must_not_be_repeated_and_says_so(
    engine: TestEngine, tools: Tools
) -> None:
    steps = [call("safe", "test.hold", needs=[]), call("unsafe", "test.once", needs=[])]
    task = await engine.start(plan_of(*steps, parallel=2))
    await engine.clock.advance("1ms")
    assert dict(tools.calls) == {"safe": 1, "unsafe": 1}
    await task.pause("immediate")
    await engine.clock.advance("1ms")
    assert (await task.refresh()).status == "pausing", "the other call is let end"
    (pausing,) = await told(task, "task.pausing")
    assert (pausing.data["mode"], pausing.data["mode_used"]) == ("immediate", "graceful")
    assert pausing.data["waits_for"] == ["unsafe"]
    assert [event.step for event in await told(task, "attempt.killed")] == ["safe"]
    tools.release.set()
    await engine.clock.advance("1ms")
    assert (await task.refresh()).status == "paused"
    await task.resume()
    assert (await task.result()).status == "completed"
    assert dict(tools.calls) == {"safe": 2, "unsafe": 1}


async def test_an_immediate_pause_cuts_off_a_call_whose_arguments_are_kept_elsewhere(
    engine: TestEngine, tools: Tools
) -> None:
    """Its tool is asked what came of it, with arguments that are in no state that was read again."""
    long = "a" * 2 * INLINE_BYTES_MAX
    task = await engine.start(plan_of({"id": "a", "tool": "test.hold", "with": {"label": long}}))
    await tools.holding.wait()
    await task.pause("immediate")
    await engine.clock.advance("1ms")
    assert (await task.refresh()).status == "paused"
    tools.release.set()
    await task.resume()
    assert (await task.result()).status == "completed"
    assert tools.calls[long] == 2


@pytest.mark.parametrize("lifted", [True, False])
async def test_a_task_that_fails_while_it_is_being_paused_does_what_is_left_after_the_pause(
    engine: TestEngine, tools: Tools, lifted: bool
) -> None:
    """It stood still for ever, in `pausing`: its `finally` was held back, and it could not end without it."""
    step = call("a", "test.hold", timeout="1s", retry={"times": 0})
    task = await engine.start(plan_of(step, **{"finally": [call("tidy", "test.echo")]}))
    await tools.holding.wait()
    await task.pause()
    if lifted:
        await task.resume()
    await engine.clock.advance("2s")
    assert (await task.refresh()).status == ("failed" if lifted else "paused")
    assert tools.calls["tidy"] == lifted
    if not lifted:
        await task.resume()
    assert (await task.result()).status == "failed"
    assert tools.calls["tidy"] == 1
    assert await told(task, "pause.withdrawn") == []


async def test_asking_again_more_urgently_cuts_off_what_was_waited_for(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of(call("a", "test.hold")))
    await tools.holding.wait()
    await task.pause()
    await task.pause()
    assert task.status == "pausing"
    await task.pause("immediate")
    await task.pause("immediate")
    await engine.clock.advance("1ms")
    assert (await task.refresh()).status == "paused"
    assert [event.data["mode"] for event in await told(task, "task.pausing")] == ["graceful", "immediate"]
    assert len(task.pauses) == 1


@pytest.mark.req("X.7")
async def test_a_pause_opens_beside_another_and_an_answer_then_starts_nothing(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [Transient("no"), None]
    task = await engine.start(plan_of({**call("a", "test.echo"), "retry": 0, "on_error": "pause"}))
    await engine.clock.advance("1ms")
    with pytest.raises(Conflict, match="waits for an answer"):
        await task.resume()
    await task.pause()
    await task.pause("immediate")
    assert [pause.type for pause in task.pauses] == ["toolError", "userRequested"]
    await task.pauses[0].retry()
    await engine.crash()
    await engine.clock.advance("1h")
    task = await engine.get(task.id)
    assert (task.status, tools.calls["a"]) == ("paused", 1)
    await task.resume()
    assert (await task.result()).status == "completed"
    assert tools.calls["a"] == 2


async def test_a_tool_that_fails_because_it_is_cut_off_has_not_failed() -> None:
    async def stubborn(ctx: Ctx) -> None:
        """Answers being cut off with an error of its own."""
        begun.append(ctx.attempt)
        holding.set()
        try:
            await release.wait()
        except asyncio.CancelledError:
            raise ValueError("interrupted") from None

    begun: list[int] = []
    holding, release = asyncio.Event(), asyncio.Event()
    async with TestEngine([tool("test.stubborn", effect="pure")(stubborn)]) as engine:
        task = await engine.start(plan_of({"id": "a", "tool": "test.stubborn"}))
        await holding.wait()
        await task.pause("immediate")
        await engine.clock.advance("1ms")
        assert (await task.refresh()).status == "paused"
        release.set()
        await task.resume()
        assert (await task.result()).status == "completed"
        assert begun == [1, 2]


async def test_the_deadline_of_a_step_stands_still_while_its_task_is_paused(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [Transient("later", retry_after="20s"), None]
    task = await engine.start(plan_of({**call("a", "test.echo"), "retry": {"times": 3, "within": "30s"}}))
    await engine.clock.advance("1s")
    await task.pause()
    await engine.clock.advance("10m")
    tools.raises["a"] = [Transient("later", retry_after="5s"), None]
    await task.resume()
    await engine.clock.advance("1m")
    assert ((await task.refresh()).status, tools.calls["a"]) == ("completed", 3)


async def test_a_stalled_task_whose_call_is_unclear_is_judged_before_it_is_paused(
    engine: TestEngine, tools: Tools
) -> None:
    task = await engine.start(plan_of(call("a", "test.once")))
    await tools.holding.wait()
    await task.pause()
    await engine.crash()
    await engine.clock.advance("1ms")
    task = await engine.get(task.id)
    assert task.status == "paused"
    assert sorted(pause.type for pause in task.pauses) == ["uncertainOutcome", "userRequested"]


# --- many cycles, on a file ---


class Counted:
    """Two kinds of tools that say when they ran to their end."""

    def __init__(self) -> None:
        self.begun: Counter[int] = Counter()
        self.ended: Counter[int] = Counter()

    def all(self) -> list[object]:
        """A tool that may be repeated, and one that may not."""

        @tool("count.pure", effect="pure")
        async def pure(n: int) -> int:
            """Takes a moment, in which it can be cut off."""
            return await self._count(n)

        @tool("count.once")
        async def once(n: int) -> int:
            """The same, and must not be repeated."""
            return await self._count(n)

        return [pure, once]

    async def _count(self, n: int) -> int:
        self.begun[n] += 1
        await asyncio.sleep(0.005)
        self.ended[n] += 1
        return n


@pytest.mark.req("4.3", "4.5")
async def test_fifty_cycles_with_duplicate_and_concurrent_calls_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    counted, draw = Counted(), random.Random(4)
    steps = 120
    plan = Plan.from_dict(
        {
            "name": "cycles",
            "steps": [
                {"id": f"s{n}", "tool": f"count.{('pure', 'once')[n % 2]}", "with": {"n": n}} for n in range(steps)
            ],
            "outputs": {"last": f"${{s{steps - 1}}}"},
        }
    )
    store = tmp_path / "everstep.db"
    async with Engine(store, tools=counted.all()) as engine:
        task = await engine.start(plan)
        for _ in range(CYCLES):
            await asyncio.sleep(draw.random() * 0.004)
            modes = [draw.choice(("graceful", "immediate")) for _ in range(draw.randint(1, 3))]
            await asyncio.gather(*(task.pause(mode) for mode in modes))
            if draw.random() < 0.5:
                async with asyncio.timeout(60):
                    await (await task.refresh()).result(on_pause="return")
                before = counted.begun.total()
                await asyncio.sleep(0.002)
                assert ((await task.refresh()).status, counted.begun.total()) == ("paused", before)
            await asyncio.gather(*(task.resume() for _ in range(draw.randint(1, 3))))
        result = await asyncio.wait_for(task.result(), 60)
        events = [event async for event in task.events(follow=False)]
    assert (result.status, result.outputs) == ("completed", {"last": steps - 1})
    completed = [event.step for event in events if event.type == "step.completed"]
    assert completed == [f"s{n}" for n in range(steps)]
    assert all(counted.begun[n] == counted.ended[n] == 1 for n in range(1, steps, 2)), "`once` is called once"
    assert all(counted.ended[n] == 1 for n in range(0, steps, 2)), "a call that was let end is not made again"
    assert not any(event.type == "step.retry_scheduled" for event in events)
    assert [violation._asdict() for violation in checker.check(store)] == []
