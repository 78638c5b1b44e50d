"""Ahead, late, early: each said once, and only of tasks whose estimate rests on enough history."""

import asyncio
from collections.abc import Sequence

import pytest

from everstep import Plan
from everstep.adapters.stores.memory import MemoryStore
from everstep.domain.events import TaskLate
from everstep.domain.history import Kind
from everstep.domain.task import Command
from everstep.domain.values import JsonValue
from everstep.facade.task import Task
from everstep.ports.history import HistoryFilter
from everstep.ports.store import Commit
from everstep.testing import TestEngine, fake

SCHEDULE = {"task.ahead_of_schedule", "task.late", "task.early_completion"}


def plan(count: int) -> Plan:
    steps: list[JsonValue] = [{"id": f"s{at}", "tool": "work"} for at in range(count)]
    return Plan.from_dict({"name": "p", "steps": steps})


async def told(engine: TestEngine, task: Task, after: str = "10m") -> list[tuple[str, dict[str, JsonValue]]]:
    end = asyncio.create_task(task.result())
    await engine.clock.advance(after)
    await asyncio.wait_for(end, 60)
    return [(event.type, dict(event.data)) async for event in task.events(follow=False) if event.type in SCHEDULE]


class Twice(MemoryStore):
    """A store where another engine, which takes the task for its own, says the same a moment before."""

    async def commit_commands(self, commands: Sequence[Command]) -> Sequence[Commit]:
        late = [one for one in commands if any(isinstance(draft.body, TaskLate) for draft in one.drafts)]
        await super().commit_commands(late)
        return await super().commit_commands(commands)


async def experienced(count: int, *, first: str, then: list[str], store: MemoryStore | None = None) -> TestEngine:
    """Twenty tasks have taken `first` per step; the calls after that take what `then` says."""
    engine = TestEngine({"work": fake(returns=1, delay=[first] * 20 * count + then)}, store=store)
    await engine.open()
    tasks = [await engine.start(plan(count)) for _ in range(20)]
    ends = asyncio.gather(*(task.result() for task in tasks))
    await engine.clock.advance("10m")
    await asyncio.wait_for(ends, 60)
    return engine


@pytest.mark.req("5.6")
async def test_a_task_of_a_minute_that_ends_in_five_seconds_is_early() -> None:
    engine = await experienced(2, first="30s", then=["3s", "2s"])
    (one,) = await told(engine, await engine.start(plan(2)))
    assert one[0] == "task.early_completion"
    assert one[1]["actual_s"] == 5.0
    estimate = one[1]["estimate"]
    assert isinstance(estimate, dict)
    assert (estimate["basis"], estimate["n"]) == ("history", 40)
    assert estimate["p50"] == pytest.approx(60, rel=0.1)
    await engine.close()


@pytest.mark.req("5.6")
async def test_a_task_that_overruns_is_late_once() -> None:
    engine = await experienced(3, first="5s", then=["55s", "55s", "55s"])
    (one,) = await told(engine, await engine.start(plan(3)))
    assert one[0] == "task.late"
    left = one[1]["p50"]
    assert isinstance(left, float)
    assert left > 0
    await engine.close()


async def test_two_engines_that_say_it_at_the_same_moment_say_it_once() -> None:
    engine = await experienced(3, first="5s", then=["55s", "55s", "55s"], store=Twice())
    said = await told(engine, await engine.start(plan(3)))
    assert [kind for kind, _ in said] == ["task.late"]
    await engine.close()


@pytest.mark.req("5.6")
async def test_a_task_that_goes_faster_than_expected_is_ahead_then_early() -> None:
    engine = await experienced(4, first="50s", then=["2s", "2s", "2s", "50s"])
    said = await told(engine, await engine.start(plan(4)))
    assert [kind for kind, _ in said] == ["task.ahead_of_schedule", "task.early_completion"]
    await engine.close()


async def test_promises_are_held_against_what_came_of_them() -> None:
    engine = await experienced(1, first="10s", then=["10s", "10s", "50s"])
    for _ in range(3):
        await told(engine, await engine.start(plan(1)))
    await engine.clock.advance("1m")
    rows = await engine.store.history.rows(HistoryFilter(kind=Kind.CALIBRATION))
    assert {row.key.outcome: (row.key.name, row.sketch.n) for row in rows} == {"covered": ("p", 2), "over": ("p", 1)}
    await engine.close()


async def test_nothing_is_promised_without_history_or_about_what_is_over_in_a_moment() -> None:
    async with TestEngine({"work": fake(returns=1, delay=["50s"] * 19 + ["1s"])}) as engine:
        for _ in range(4):
            assert await told(engine, await engine.start(plan(1))) == []
    engine = await experienced(1, first="500ms", then=["1ms"])
    assert await told(engine, await engine.start(plan(1))) == []
    await engine.close()
