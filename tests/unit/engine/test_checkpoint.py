"""Checkpoints: what a call has finished is never done again, however it ended and whoever makes it next."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep import Ctx, Plan, Transient, tool
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.testing import TestEngine


class Units:
    """Tools that do one unit after the other, and may stand still or fail before one."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.fail_at: set[int] = set()
        self.hold_at: int | None = None
        self.holding = asyncio.Event()
        self.release = asyncio.Event()

    def all(self) -> list[Any]:
        @tool.idempotent("units.some", timeout="24h")
        async def some(n: int, label: str = "", *, ctx: Ctx) -> dict[str, Any]:
            """One after the other."""
            return await self._work(n, ctx)

        @tool("units.once", timeout="24h")
        async def once(n: int, *, ctx: Ctx) -> dict[str, Any]:
            """The same, and must not be repeated."""
            return await self._work(n, ctx)

        @tool.pure("units.told", timeout="24h")
        async def told(what: str, *, ctx: Ctx) -> None:
            """Leave something that cannot be kept."""
            await ctx.checkpoint("x" * 20_000 if what == "long" else {1, 2})  # type: ignore[arg-type]

        @tool.pure("units.thread", timeout="24h")
        def thread(n: int, *, ctx: Ctx) -> int:
            """In a thread nobody has to await."""
            first = ctx.cursor if isinstance(ctx.cursor, int) else 0
            for number in range(first, n):
                if number in self.fail_at:
                    self.fail_at.discard(number)
                    raise Transient("not now")
                self.done.append(number)
                ctx.checkpoint(number + 1)
            return first

        return [some, once, told, thread]

    async def _work(self, n: int, ctx: Ctx) -> dict[str, Any]:
        first = ctx.cursor if isinstance(ctx.cursor, int) else 0
        for number in range(first, n):
            if number == self.hold_at:
                self.hold_at = None
                self.holding.set()
                await self.release.wait()
            if number in self.fail_at:
                self.fail_at.discard(number)
                raise Transient("not now")
            self.done.append(number)
            await ctx.checkpoint(number + 1)
        return {"first": first}


@pytest.fixture
def units() -> Units:
    return Units()


@pytest.fixture
async def engine(units: Units) -> AsyncIterator[TestEngine]:
    async with TestEngine(units.all()) as opened:
        yield opened
        assert await opened.store.check() == []


def plan_of(tool: str = "units.some", **arguments: JsonValue) -> Plan:
    step: JsonObject = {"id": "a", "tool": tool, "with": arguments or {"n": 6}}
    return Plan.from_dict({"name": "p", "steps": [step], "outputs": {"a": "${a}"}})


async def finish(engine: TestEngine, task: Task) -> Result:
    waiting = asyncio.create_task(task.result(on_pause="return"))
    async with asyncio.timeout(60):
        while not waiting.done():
            await engine.clock.advance("1m")
            await asyncio.sleep(0)  # threads live in real time
    return await waiting


async def kinds(task: Task) -> list[str]:
    return [event.type for event in [event async for event in task.events(follow=False)]]


@pytest.mark.req("4.3")
@pytest.mark.parametrize("tool", ["units.some", "units.thread"])
async def test_a_retry_goes_on_where_the_call_had_come_to(engine: TestEngine, units: Units, tool: str) -> None:
    units.fail_at = {2, 5}
    result = await finish(engine, await engine.start(plan_of(tool)))
    assert (result.status, units.done) == ("completed", [*range(6)])


@pytest.mark.req("4.3", "DoD.4")
async def test_a_crash_costs_nothing_that_was_finished(engine: TestEngine, units: Units) -> None:
    units.hold_at = 3
    task = await engine.start(plan_of())
    await units.holding.wait()
    await engine.crash()
    result = await finish(engine, await engine.get(task.id))
    assert (result.status, result.outputs, units.done) == ("completed", {"a": {"first": 3}}, [*range(6)])


@pytest.mark.req("4.3", "4.1")
@pytest.mark.parametrize("tool", ["units.some", "units.once"])
async def test_a_graceful_pause_ends_the_call_at_its_checkpoint(engine: TestEngine, units: Units, tool: str) -> None:
    units.hold_at = 2
    task = await engine.start(plan_of(tool, n=6))
    await units.holding.wait()
    await task.pause()
    units.release.set()
    paused = await finish(engine, task)
    assert (paused.status, units.done) == ("paused", [0, 1, 2])
    (end,) = [event async for event in task.events(follow=False) if event.type == "attempt.abandoned"]
    error: Any = end.data["error"]
    assert (end.data["effect_state"], error["code"]) == ("none", "paused")
    await engine.crash()
    task = await engine.get(task.id)
    await task.resume()
    result = await finish(engine, task)
    assert (result.status, result.outputs, units.done) == ("completed", {"a": {"first": 3}}, [*range(6)])
    assert "step.retry_scheduled" not in await kinds(task), "a pause uses up no retry"


@pytest.mark.req("4.3")
async def test_a_failed_step_goes_on_when_its_task_is_retried_and_a_completed_one_begins_anew(
    engine: TestEngine, units: Units
) -> None:
    plan = Plan.from_dict(
        {"name": "p", "steps": [{"id": "a", "tool": "units.some", "with": {"n": 6}, "retry": {"times": 0}}]}
    )
    units.fail_at = {4}
    task = await engine.start(plan)
    assert (await finish(engine, task)).status == "failed"
    assert units.done == [0, 1, 2, 3]
    await task.retry()
    assert ((await finish(engine, task)).status, units.done) == ("completed", [*range(6)])
    await task.retry("a")
    assert ((await finish(engine, task)).status, units.done) == ("completed", [*range(6), *range(6)])


async def test_another_call_has_another_beginning(engine: TestEngine, units: Units) -> None:
    units.fail_at = {4}
    plan = Plan.from_dict(
        {
            "name": "p",
            "steps": [
                {"id": "a", "tool": "units.some", "with": {"n": 6}, "retry": {"times": 0}, "on_error": "pause"},
            ],
        }
    )
    task = await engine.start(plan)
    assert (await finish(engine, task)).status == "paused"
    await engine.inbox.only().retry_with({"n": 3, "label": "other"})
    assert ((await finish(engine, await task.refresh())).status, units.done) == ("completed", [0, 1, 2, 3, 0, 1, 2])


@pytest.mark.parametrize("what", ["long", "strange"])
async def test_what_cannot_be_kept_is_refused(engine: TestEngine, what: str) -> None:
    result = await finish(engine, await engine.start(plan_of("units.told", what=what)))
    assert result.error is not None
    assert (result.status, result.error["category"]) == ("failed", "configuration")
