"""`/v1/stats`: figures that are right, of one's own tasks only; phases of a task add up to its time."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep.authoring.tool import tool
from everstep.domain.ids import Instant
from everstep.domain.values import JsonValue
from everstep.engine.feed import Notice
from everstep.ports.tool import Transient
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools


class Pace:
    """A tool that takes as long as it is told to, and fails when it is told to."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.fails: list[bool] = []

    def all(self, engine: list[TestEngine]) -> list[object]:
        @tool("test.pace", effect="pure", timeout="1h")
        async def pace(seconds: float = 1.0) -> float:
            """Takes its time."""
            clock = engine[0].clock
            await clock.sleep_until(Instant(clock.now() + round(seconds * self.factor * 1000)))
            if self.fails and self.fails.pop():
                raise Transient("not this time")
            return seconds

        return [pace]


@pytest.fixture
def pace() -> Pace:
    return Pace()


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def window(pace: Pace, tools: Tools) -> AsyncIterator[Window]:
    engines: list[TestEngine] = []
    async with TestEngine([*pace.all(engines), *tools.all()]) as engine:
        engines.append(engine)
        yield Window(engine)
        tools.release.set()


def paced(*seconds: float, name: str = "paced", **more: JsonValue) -> dict[str, JsonValue]:
    steps: list[JsonValue] = [
        {"id": f"s{n}", "tool": "test.pace", "with": {"seconds": one}, "retry": {"times": 0}}
        for n, one in enumerate(seconds)
    ]
    return {"name": name, "steps": steps, **more}


async def stats(window: Window, query: str = "", **more: Any) -> dict[str, Any]:
    return await window.good("GET", f"/v1/stats?{query}", **more)


@pytest.mark.req("M.1")
async def test_times_per_tool_plan_and_step(window: Window) -> None:
    for seconds in (1.0, 2.0, 4.0):
        await window.start(paced(seconds, 10.0))
        await window.engine.clock.advance("1m")
    told = await stats(window)
    (by_tool,) = told["tools"]
    assert (by_tool["tool"], by_tool["n"], by_tool["success"], by_tool["share"]) == ("test.pace", 6, 1.0, 1.0)
    assert by_tool["total_s"] == pytest.approx(37, rel=0.01)
    assert by_tool["p90"] == pytest.approx(10, rel=0.06)
    (plan,) = told["plans"]
    assert (plan["plan"], plan["n"], plan["ends"]["success"]) == ("paced", 3, 3)
    assert plan["p50"] == pytest.approx(12, rel=0.06)
    slowest, other = told["steps"]
    assert (slowest["step"], slowest["p50"]) == ("s1", pytest.approx(10, rel=0.06))
    assert other["p50"] == pytest.approx(2, rel=0.06)
    assert told["tasks"]["now"]["completed"] == 3
    assert told["tasks"]["buckets"][-1]["success"] == 3


@pytest.mark.req("M.3", "DoD.10")
async def test_the_success_rate_of_tools_and_plans_is_that_of_what_happened(window: Window, pace: Pace) -> None:
    chance = random.Random(3)
    fails = [chance.random() < 0.2 for _ in range(200)]
    pace.fails = fails[::-1]
    for _ in fails:
        await window.start(paced(0.1))
        await window.engine.clock.advance("1s")
    expected = 1 - sum(fails) / len(fails)
    assert 0.74 <= expected <= 0.86, "20 % within sampling error"
    for span in ("1h", "24h", "7d"):
        told = await stats(window, f"range={span}")
        assert told["tools"][0]["success"] == told["calls"]["success"] == pytest.approx(expected, abs=1e-4)
        assert told["plans"][0]["success"] == told["tasks"]["success"] == pytest.approx(expected, abs=1e-4)
    await window.engine.clock.advance("3h")
    assert (await stats(window, "range=1h"))["calls"] == {"n": 0, "success": None, "retries": 0}
    assert (await stats(window, "range=24h"))["calls"]["n"] == 200
    await window.engine.clock.advance("26h")
    assert (await stats(window, "range=24h"))["calls"]["n"] == 0
    assert (await stats(window, "range=7d"))["calls"]["n"] == 200


async def test_retries_approvals_and_queues_have_their_times(window: Window, pace: Pace) -> None:
    pace.fails = [False, True]
    step: JsonValue = {"id": "a", "tool": "test.pace", "approve": True, "retry": {"times": 1, "delay": "10s"}}
    await window.start({"name": "p", "steps": [step]})
    await window.engine.clock.advance("2m")
    await window.engine.inbox.only().approve()
    await window.engine.clock.advance("1m")
    told = await stats(window)
    phases = {one["phase"]: one for one in told["phases"]}
    assert phases["executing"]["total_s"] == pytest.approx(2, abs=0.01)
    assert 5 <= phases["retry_wait"]["total_s"] <= 10
    assert phases["awaiting_approval"]["total_s"] == told["approval_wait"]["total_s"] == pytest.approx(120, abs=0.01)
    assert told["calls"] == {"n": 2, "success": 0.5, "retries": 1}
    assert told["approval_wait"]["rejects"] == 0
    await window.start({"name": "p", "steps": [step]})
    await window.engine.clock.advance("1s")
    await window.engine.inbox.only().reject("not now")
    await window.engine.clock.advance("1s")
    assert (await stats(window))["approval_wait"]["rejects"] == 0.5


async def test_of_one_plan_and_of_nobody_else(window: Window) -> None:
    await window.start(paced(1.0))
    await window.start(paced(1.0, name="other"))
    await window.engine.clock.advance("1m")
    assert {one["plan"] for one in (await stats(window))["plans"]} == {"paced", "other"}
    told = await stats(window, "plan=other")
    assert [one["plan"] for one in told["plans"]] == ["other"]
    assert (told["plan"], told["tasks"]["now"]["completed"], told["calls"]["n"]) == ("other", 1, 1)
    strange = await stats(window, who=EVE)
    assert (strange["plans"], strange["tools"], sum(strange["tasks"]["now"].values())) == ([], [], 0)
    task = await window.start(ECHO)
    assert codes(await window.refused("GET", f"/v1/stats?task={task['id']}", who=EVE)) == (404, "not_found")


@pytest.mark.parametrize("query", ["range=1m", "range=31d", "range=x", "range=", "task=t_x&range=1h", "since=1h"])
async def test_a_wrong_question_is_refused(window: Window, query: str) -> None:
    assert (await window.refused("GET", f"/v1/stats?{query}"))[0] in (400, 404)


# --- one task ---


@pytest.mark.req("M.4", "DoD.10")
async def test_the_phases_of_a_task_add_up_to_its_time(window: Window, pace: Pace) -> None:
    await window.good("PUT", "/v1/halt", {"on": True})
    pace.fails = [False, False, True]
    steps: JsonValue = [
        {"id": "a", "tool": "test.pace", "with": {"seconds": 3}, "retry": {"times": 1, "delay": "8s"}},
        {"id": "w", "tool": "wait", "with": {"for": "20s"}},
        {"id": "b", "tool": "test.pace", "with": {"seconds": 5}, "approve": True},
    ]
    task = await window.start({"name": "p", "steps": steps})
    await window.engine.clock.advance("30s")
    await window.good("PUT", "/v1/halt", {"on": False})
    await window.engine.clock.advance("1m")
    await window.good("POST", f"/v1/tasks/{task['id']}/pause", {})
    await window.engine.clock.advance("10s")
    await window.good("POST", f"/v1/tasks/{task['id']}/resume", {})
    await window.engine.clock.advance("40s")
    await window.engine.inbox.only().approve()
    await window.engine.clock.advance("1m")
    shown = await window.good("GET", f"/v1/tasks/{task['id']}")
    assert shown["status"] == "completed"
    told = await stats(window, f"task={task['id']}")
    phases = {one["phase"]: one["total_s"] for one in told["phases"]}
    assert sum(phases.values()) == pytest.approx(told["wall_s"], rel=0.01)
    assert phases["queued"] == pytest.approx(30, abs=0.1)
    assert phases["executing"] == pytest.approx(11, abs=0.1)
    assert phases["waiting"] == pytest.approx(20, abs=0.1)
    assert phases["paused"] == pytest.approx(10, abs=0.1)
    assert 4 <= phases["retry_wait"] <= 8
    assert sum(one["share"] for one in told["phases"]) == pytest.approx(1, abs=0.01)
    assert [one["tool"] for one in told["tools"]] == ["test.pace"]
    assert [leg["step"] for leg in told["critical_path"]] == ["a", "w", "b"]


@pytest.mark.req("M.4")
async def test_the_critical_path_is_the_one_that_decided_when_it_ended(window: Window) -> None:
    def one(id: str, seconds: float, *needs: str) -> JsonValue:
        return {"id": id, "tool": "test.pace", "with": {"seconds": seconds}, "needs": [*needs]}

    steps: JsonValue = [one("a", 2), one("b", 30), one("c", 3, "a"), one("d", 4, "b", "c"), one("e", 1, "c")]
    task = await window.start({"name": "p", "steps": steps, "parallel": 4})
    await window.engine.clock.advance("1m")
    told = await stats(window, f"task={task['id']}")
    assert [(leg["step"], leg["took_s"]) for leg in told["critical_path"]] == [("b", 30.0), ("d", 4.0)]
    assert told["slowest_step"] == "b"
    assert told["wall_s"] == pytest.approx(34, abs=0.1)


async def test_a_task_that_has_not_ended_is_shown_up_to_now(window: Window) -> None:
    task = await window.start(HOLD)
    await window.engine.clock.advance("90s")
    told = await stats(window, f"task={task['id']}")
    assert (told["status"], told["wall_s"]) == ("running", pytest.approx(90, abs=0.1))
    assert [one["phase"] for one in told["phases"]] == ["executing"]


# --- regressions ---


@pytest.mark.req("M.5", "DoD.10")
async def test_a_step_that_becomes_slower_is_told_once_and_shown_until_it_is_fast_again(
    window: Window, pace: Pace
) -> None:
    heard: list[Notice] = []
    leave = window.engine.desk.watching.notices(heard.append)

    async def run(count: int) -> None:
        for _ in range(count):
            await window.start(paced(0.1))
            await window.engine.clock.advance("4s")

    await run(120)
    assert (await stats(window))["regressions"] == []
    pace.factor = 3.0
    await run(60)
    (slow,) = (await stats(window))["regressions"]
    assert (slow["plan"], slow["step"], slow["tool"]) == ("paced", "s0", "test.pace")
    assert (slow["before_s"], slow["now_s"], slow["ratio"]) == (0.1, 0.3, 3.0)
    assert slow["p"] < 0.01
    assert [(one.topic, one.owner, one.data["step"]) for one in heard if one.topic == "regression"] == [
        ("regression", "local", "s0")
    ]
    assert any(event == "a step has become slower" for event, _ in window.engine.sink.notes)
    assert (await stats(window, who=EVE))["regressions"] == []
    pace.factor = 1.0
    await run(20)
    assert (await stats(window))["regressions"] == []
    leave()
