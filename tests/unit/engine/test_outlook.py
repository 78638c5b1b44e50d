"""Estimates as people see them: from guesses, from history, of what is under way; and never a made-up number."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from everstep import Plan, tool
from everstep.domain.values import JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import Call, Prior, Transient
from everstep.testing import TestEngine, fake
from everstep.testing.fakes import Fake
from tests.unit.doors.api.window import Window


def by_size(call: Call) -> Prior:
    size = call.arguments["megabytes"]
    assert isinstance(size, int)
    return Prior(p10_s=size / 200, p50_s=size / 100, p90_s=size / 25, size_class=str(size))


@tool.pure("copy", estimate=by_size)
async def copy(megabytes: int) -> int:
    """Copy."""
    return megabytes


@tool.pure("plain")
async def plain(n: int = 0) -> int:
    """No guess."""
    return n


def of(*steps: JsonValue, **keys: JsonValue) -> Plan:
    return Plan.from_dict({"name": "p", "steps": [*steps], **keys})


def copies(*sizes: int, **keys: JsonValue) -> Plan:
    steps: list[JsonValue] = [
        {"id": f"s{at}", "tool": "copy", "with": {"megabytes": size}} for at, size in enumerate(sizes)
    ]
    return of(*steps, **keys)


def plains(count: int, **keys: JsonValue) -> Plan:
    steps: list[JsonValue] = [{"id": f"s{at}", "tool": "plain", "with": {"n": at}} for at in range(count)]
    return of(*steps, **keys)


async def finished(engine: TestEngine, *tasks: Task, after: str = "10m") -> None:
    ends = [asyncio.create_task(task.result()) for task in tasks]
    await engine.clock.advance(after)
    await asyncio.wait_for(asyncio.gather(*ends), 60)
    await engine.clock.advance("5s")


async def lived(tool: Fake, plan: Plan, times: int = 1) -> TestEngine:
    """An engine that has carried out the plan so often."""
    engine = TestEngine({"plain": tool})
    await engine.open()
    await finished(engine, *[await engine.start(plan) for _ in range(times)], after="2m")
    return engine


def seconds(task: Task) -> Sequence[float | None]:
    assert task.estimate is not None
    return (task.estimate.p10, task.estimate.p50, task.estimate.p90)


def known(task: Task) -> float:
    middle = seconds(task)[1]
    assert middle is not None
    return middle


@pytest.mark.req("5.1")
async def test_the_answer_to_a_submission_guesses_by_what_is_to_be_done() -> None:
    async with TestEngine([copy]) as engine:
        window = Window(engine)
        small, large = [(await window.start(copies(size).to_dict(), title=str(size)))["estimate"] for size in (1, 100)]
        assert (small["basis"], small["n"], large["basis"]) == ("prior", 0, "prior")
        assert [small["p50"], large["p50"]] == pytest.approx([0.01, 1.0], rel=0.05)
        assert large["p10"] < large["p50"] < large["p90"]


async def test_without_history_and_guess_there_is_no_number() -> None:
    async with TestEngine([plain]) as engine:
        task = await engine.start(plains(2))
        assert task.estimate is not None
        assert (*seconds(task), task.estimate.basis, task.estimate.n) == (None, None, None, None, 0)
        await task.result()
        await task.refresh()
        assert task.estimate is None, "it has ended"


@pytest.mark.req("5.5")
async def test_history_speaks_for_itself_after_twenty_tasks_and_after_a_restart() -> None:
    """Guessed 10 ms, takes 3 s: history is nearer than the guess, and remembered."""
    engine = TestEngine({"copy": fake(returns=1, delay="3s")}, seed=1)
    engine._tools = (copy,)
    async with engine:
        guessed = await engine.start(copies(1))
        first = known(guessed)
        await finished(engine, guessed, *[await engine.start(copies(1)) for _ in range(19)])
        await engine.crash()
        task = await engine.start(copies(1))
        await task.refresh()
        assert task.estimate is not None
        assert (task.estimate.basis, task.estimate.n) == ("history", 20)
        assert seconds(task)[1] == pytest.approx(3.0, rel=0.1)
        assert abs(known(task) - 3.0) < abs(first - 3.0)
        await finished(engine, task)


@pytest.mark.req("5.2")
async def test_what_really_happened_corrects_the_guess() -> None:
    """Every call takes three times as long as guessed: after the second, the rest is estimated better."""
    engine = TestEngine({"copy": fake(returns=1, delay="3s")})
    engine._tools = (copy,)
    async with engine:
        task = await engine.start(copies(*[100] * 6))
        errors = []
        for done in range(4):
            await task.refresh()
            errors.append(abs(known(task) - 3.0 * (6 - done)) / (3.0 * (6 - done)))
            await engine.clock.advance("3s")
        assert errors[2] < errors[0] / 2
        await finished(engine, task)


@pytest.mark.req("5.3")
async def test_what_is_left_falls_with_time_and_is_never_negative() -> None:
    engine = await lived(fake(returns=1, delay="30s"), plains(1), 20)
    task = await engine.start(plains(1))
    left = []
    for _ in range(28):
        await task.refresh()
        left.append(known(task))
        await engine.clock.advance("1s")
    assert left[0] == pytest.approx(30, rel=0.1)
    assert left[-1] < 5
    assert all(one >= 0 for one in left)
    falls = [before - after for before, after in pairwise(left)]
    assert sum(falls) / len(falls) == pytest.approx(1.0, rel=0.2)
    await finished(engine, task)
    await engine.close()


async def test_an_overrun_is_not_over_yet() -> None:
    engine = await lived(fake(returns=1, delay=["1s"] * 20 + ["50s"]), plains(1), 20)
    task = await engine.start(plains(1))
    await engine.clock.advance("30s")
    await task.refresh()
    low, middle, high = (time or 0.0 for time in seconds(task))
    assert 0 < low < middle < high, "longer than anything before: it may take as long again"
    await finished(engine, task)
    await engine.close()


async def test_retries_are_expected_where_there_were_some() -> None:
    flaky = fake(returns=1, delay="1s", raises=[Transient("down"), None, None, None] * 10)
    engine = await lived(flaky, plains(1), 20)
    task = await engine.start(plains(1))
    await task.refresh()
    low, _, high = (time or 0.0 for time in seconds(task))
    assert low == pytest.approx(1, rel=0.3), "it may go well"
    assert high > 2, "or be tried again, after a wait"
    await finished(engine, task)
    await engine.close()


async def test_steps_at_the_same_time_take_as_long_as_the_longest() -> None:
    slow = fake(returns=1, delay="10s")
    engine = await lived(slow, plains(1), 20)
    keys: dict[str, JsonValue] = {"id": "x", "tool": "plain", "needs": []}
    wide = of(*({**keys, "id": f"s{at}"} for at in range(4)), parallel=4)
    narrow = of(*({**keys, "id": f"s{at}"} for at in range(4)), parallel=2)
    each = of({"id": "all", "tool": "plain", "for_each": [1, 2, 3, 4], "with": {"n": "${item}"}, "parallel": 2})
    window = Window(engine)
    for plan, expected in ((wide, 10), (narrow, 20), (each, 20), (plains(4), 40)):
        found = await window.good("POST", "/v1/estimates", {"plan": plan.to_dict()})
        assert found["task"]["p50"] == pytest.approx(expected, rel=0.15)
        assert all(step["basis"] == "history" for step in found["steps"].values())
    await engine.close()


async def test_a_wait_takes_as_long_as_it_says_and_a_person_is_no_work() -> None:
    async with TestEngine([]) as engine:
        task = await engine.start(
            of(
                {"id": "w", "tool": "wait", "with": {"for": "1m"}},
                {"id": "q", "tool": "ask", "with": {"question": "?"}},
            )
        )
        await engine.clock.advance("20s")
        await task.refresh()
        assert seconds(task)[1] == pytest.approx(40, abs=1)
        await engine.clock.advance("1h")
        await task.refresh()
        assert task.estimate is not None
        assert (task.estimate.waiting_on, task.status) == ("person", "paused")
        assert (task.estimate.p90 or 0) < 1, "to wait for a person is no work"


async def test_the_estimate_of_a_task_tells_of_each_step() -> None:
    engine = await lived(fake(returns=1, delay="10s"), plains(1), 20)
    window = Window(engine)
    task = await engine.start(plains(3))
    await engine.clock.advance("11s")
    shown = await window.good("GET", f"/v1/tasks/{task.id}/estimate")
    assert list(shown["steps"]) == ["s1", "s2"]
    assert shown["steps"]["s2"]["p50"] == pytest.approx(10, rel=0.1)
    assert shown["task"]["p50"] == pytest.approx(19, rel=0.1)
    whole = await window.good("GET", f"/v1/tasks/{task.id}")
    assert whole["estimate"] == shown["task"]
    assert [step["estimate"] is None for step in whole["steps"]] == [True, False, False]
    await finished(engine, task)
    assert (await window.good("GET", f"/v1/tasks/{task.id}/estimate")) == {"task": None, "steps": {}}
    await engine.close()


async def test_who_waits_in_the_queue_learns_how_long() -> None:
    engine = TestEngine({"plain": fake(returns=1, delay="10s")}, config={"engine": {"tasks": 1}})
    async with engine:
        await finished(engine, *[await engine.start(plains(1)) for _ in range(20)])
        tasks = [await engine.start(plains(1)) for _ in range(3)]
        await engine.clock.advance("5s")
        queue = [(await Window(engine).good("GET", f"/v1/tasks/{task.id}"))["queue"] for task in tasks]
        assert queue[0] is None, "it is at work"
        assert [one["position"] for one in queue[1:]] == [1, 2]
        assert [one["wait_s"] for one in queue[1:]] == [pytest.approx(10, rel=0.2), pytest.approx(20, rel=0.2)]
        await finished(engine, *tasks)
