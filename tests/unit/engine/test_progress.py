"""Progress over the life of a task: retries, skips, patches and crashes on random plans, and it never falls."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everstep import Misconfigured, Plan, Transient, tool
from everstep.domain.values import JsonObject
from everstep.facade.task import Task
from everstep.ports.tool import Call, Prior
from everstep.testing import TestEngine

OPS = ("done", "done", "done", "again", "skip", "patch", "crash", "slow", "look")


def guess(call: Call) -> Prior:
    size = call.arguments["size"]
    assert isinstance(size, int)
    return Prior(p10_s=size / 2, p50_s=size, p90_s=size * 2.0, size_class=str(size))


class Stage:
    """One call at a time, which stands still until somebody says how it ends."""

    def __init__(self) -> None:
        self.call: asyncio.Future[int] | None = None

        @tool.pure("work", estimate=guess, timeout="24h")
        async def work(size: int) -> int:
            """Stand still."""
            self.call = asyncio.get_running_loop().create_future()
            return await self.call

        self.work: Any = work


def step(name: str, size: int) -> JsonObject:
    return {"id": name, "tool": "work", "with": {"size": size}, "on_error": "pause"}


async def play(ops: list[str], sizes: list[int]) -> list[float]:
    """What was told, after each of the ops."""
    stage = Stage()
    plan = Plan.from_dict({"name": "p", "steps": [step(f"s{at}", size) for at, size in enumerate(sizes)]})
    engine = TestEngine([stage.work])
    await engine.open()
    name = (await engine.start(plan)).id
    told: list[float] = []
    for op in (*ops, *["done"] * 3 * (len(sizes) + len(ops))):
        await engine.clock.advance("60s" if op != "slow" else "10m")
        task = await engine.get(name)
        told.append(task.progress.fraction)
        if task.status in ("completed", "failed"):
            break
        await act(op, engine, stage, task)
    assert (await engine.get(name)).status == "completed"
    assert await engine.store.check() == []
    await engine.close()
    return told


async def act(op: str, engine: TestEngine, stage: Stage, task: Task) -> None:
    waits = stage.call is not None and not stage.call.done()
    match op:
        case "done" if waits:
            assert stage.call is not None
            stage.call.set_result(1)
        case "again" if waits:
            assert stage.call is not None
            stage.call.set_exception(Transient("not now"))
        case "skip" if waits:
            assert stage.call is not None
            stage.call.set_exception(Misconfigured("not like this"))
        case "patch":
            more: list[JsonObject] = [
                {"op": "append", "step": step(f"r{task.revision}_{at}", 50 * at + 1)} for at in range(3)
            ]
            await task.patch(more, task.revision)
        case "crash":
            await engine.crash()
            return  # what was held is of the engine that died
        case _:
            pass
    if task.pauses:
        await task.pauses[0].skip()


@pytest.mark.req("1.3", "TU.4")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(OPS), max_size=12), st.lists(st.integers(1, 100), min_size=1, max_size=5))
@example(["skip", "crash"], [87])
def test_it_never_falls_over_retry_skip_patch_and_restart(ops: list[str], sizes: list[int]) -> None:
    told = asyncio.run(play(ops, sizes))
    assert all(before <= after for before, after in pairwise(told)), told
    assert told[-1] == 1
    assert all(share < 1 for share in told[:-1]), "whole only at the end"


@pytest.mark.req("1.3")
def test_what_was_told_before_a_patch_and_a_crash_stands() -> None:
    told = asyncio.run(play(["done", "look", "patch", "crash", "look", "look"], [100, 1]))
    assert told[1] > 0.9, "the long step is done"
    assert min(told[2:]) == told[1], "three more steps, and another engine"


async def test_nobody_asks_nothing_is_written() -> None:
    """What is told is written down first; what nobody asks for is not told."""
    stage = Stage()
    async with TestEngine([stage.work]) as engine:
        task = await engine.start(Plan.from_dict({"name": "p", "steps": [step("a", 3), step("b", 3)]}))
        await engine.clock.advance("10s")
        assert stage.call is not None
        stage.call.set_result(1)
        await engine.clock.advance("10s")
        assert await engine.store.marks.told(task.task_id, 1) == 0
        assert (await engine.get(task.id)).progress.fraction == 0.5
        assert await engine.store.marks.told(task.task_id, 1) == 0.5
        stage.call.set_result(1)
        assert (await task.result()).status == "completed"
