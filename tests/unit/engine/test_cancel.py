"""Cancel: calls get their grace, `finally` steps their minute; asked twice, they are left out."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from everstep.authoring.tool import tool
from everstep.domain.ids import StepPath
from everstep.domain.states import StepStatus
from everstep.domain.values import JsonObject
from everstep.facade.task import Task
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, final, plan_of

HOLD: JsonObject = {"id": "h", "tool": "test.hold"}
TIDY: JsonObject = {"id": "tidy", "tool": "test.echo", "with": {"label": "tidy"}}
SLOW: JsonObject = {"id": "slow", "tool": "test.slow", "timeout": "1h"}


class Stubborn:
    """Tools that take their time, and one that does not listen."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.stop = asyncio.Event()

    def all(self) -> list[object]:
        @tool("test.slow", effect="pure")
        async def slow() -> dict[str, str]:
            """Ends only when it is told to."""
            self.began.set()
            await asyncio.Event().wait()
            return {}

        @tool("test.deaf")
        async def deaf() -> dict[str, str]:
            """Does not end when it is asked to."""
            self.began.set()
            while not self.stop.is_set():
                try:
                    await self.stop.wait()
                except asyncio.CancelledError:
                    continue
            return {}

        return [slow, deaf]


@pytest.fixture
def stubborn() -> Stubborn:
    return Stubborn()


@pytest.fixture
async def engine(tools: Tools, stubborn: Stubborn) -> AsyncIterator[TestEngine]:
    async with TestEngine([*tools.all(), *stubborn.all()]) as opened:
        yield opened
        stubborn.stop.set()
        assert await opened.store.check() == []


async def cancelled(task: Task) -> bool:
    return (await task.refresh()).status == "cancelled"


async def test_calls_end_then_finally_then_the_rest_is_skipped(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of(HOLD, {**TIDY, "id": "next"}, **final(TIDY)))
    await tools.holding.wait()
    assert (await task.cancel(note="enough")).status == "cancelling"
    await engine.clock.advance("1s")
    assert await cancelled(task)
    assert task.steps[StepPath("tidy")].status is StepStatus.COMPLETED
    assert [task.steps[StepPath(name)].skip_reason for name in ("h", "next")] == ["task_cancelled"] * 2
    assert tools.calls == {"hold": 1, "tidy": 1}


async def test_a_call_that_does_not_end_is_given_up_after_its_grace(engine: TestEngine, stubborn: Stubborn) -> None:
    task = await engine.start(plan_of({"id": "d", "tool": "test.deaf"}))
    await stubborn.began.wait()
    await task.cancel()
    await engine.clock.advance("4s")
    assert not await cancelled(task)
    await engine.clock.advance("2s")
    assert await cancelled(task)
    ends = [event async for event in task.events(follow=False) if event.type == "attempt.abandoned"]
    assert [event.data["effect_state"] for event in ends] == ["unknown"]
    (result,) = (await task.result()).issues
    assert (result.step, result.status) == ("d", "uncertain")


async def test_finally_steps_get_a_minute_in_all(engine: TestEngine, tools: Tools, stubborn: Stubborn) -> None:
    task = await engine.start(plan_of(HOLD, **final(SLOW, TIDY)))
    await tools.holding.wait()
    await task.cancel()
    await engine.clock.advance("59s")
    assert stubborn.began.is_set()
    assert not await cancelled(task)
    await engine.clock.advance("2s")
    assert await cancelled(task)
    assert tools.calls["tidy"] == 0


async def test_a_second_cancel_leaves_finally_steps_out(engine: TestEngine, tools: Tools, stubborn: Stubborn) -> None:
    task = await engine.start(plan_of(HOLD, **final(SLOW, TIDY)))
    await tools.holding.wait()
    await task.cancel()
    await engine.clock.advance("1s")
    assert stubborn.began.is_set()
    assert (await task.cancel()).status == "cancelling"
    await engine.clock.advance("1s")
    assert await cancelled(task)
    assert tools.calls["tidy"] == 0
    before = (await engine.desk.get(task.id, engine.who)).seq
    assert (await task.cancel()).status == "cancelled"
    assert (await engine.desk.get(task.id, engine.who)).seq == before, "what holds is not said again"


async def test_a_crash_in_finally_leaves_the_rest_of_its_minute(
    engine: TestEngine, tools: Tools, stubborn: Stubborn
) -> None:
    task = await engine.start(plan_of(HOLD, **final(SLOW, TIDY)))
    await tools.holding.wait()
    await task.cancel()
    await engine.clock.advance("30s")
    await engine.crash(down="20s")
    task = await engine.get(task.id)
    await engine.clock.advance("9s")
    assert not await cancelled(task)
    await engine.clock.advance("2s")
    assert await cancelled(task)


async def test_what_waits_is_cancelled_at_once(engine: TestEngine, tools: Tools) -> None:
    waits = await engine.start(plan_of({"id": "w", "tool": "wait", "with": {"for": "1h"}}))
    await engine.clock.advance("1s")
    await waits.pause()
    await engine.clock.advance("1s")
    assert (await waits.refresh()).status == "paused"
    assert (await waits.cancel()).status == "cancelled"


async def test_a_halt_does_not_use_up_the_minute_of_finally(
    engine: TestEngine, tools: Tools, stubborn: Stubborn
) -> None:
    task = await engine.start(plan_of(HOLD, **final(TIDY)))
    await tools.holding.wait()
    await engine.desk.halt(engine.who, "fire drill")
    await task.cancel()
    await engine.clock.advance("10m")
    assert not await cancelled(task)
    assert tools.calls["tidy"] == 0, "nothing is called while everything stands still"
    await engine.desk.lift_halt()
    await engine.clock.advance("1s")
    assert await cancelled(task)
    assert tools.calls["tidy"] == 1


async def test_whoever_holds_an_old_view_of_a_task_that_never_began_learns_its_end(tools: Tools) -> None:
    async with TestEngine(tools.all(), config={"engine": {"tasks": 1}}) as engine:
        await engine.start(plan_of(HOLD))
        await tools.holding.wait()
        queued = await engine.start(plan_of(HOLD))
        await (await engine.get(queued.id)).cancel()
        assert queued.status == "queued"
        assert (await asyncio.wait_for(queued.result(), 60)).status == "cancelled"
        tools.release.set()
