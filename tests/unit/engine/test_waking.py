"""What is due is done, whatever else is under way."""

from typing import Any

from everstep.authoring.plan import Plan
from everstep.ports.tool import Transient
from everstep.testing.engine import TestEngine
from everstep.testing.fakes import Fake, fake


def plan_of(*steps: dict[str, Any], **more: Any) -> Plan:
    return Plan.from_dict({"name": "p", "parallel": 2, "steps": list(steps), **more})


LONG = {"id": "long", "tool": "x.long", "timeout": "1h"}


def flaky() -> Fake:
    return fake(raises=[Transient("not now"), None], returns=1, effect="pure")


async def test_a_retry_is_made_while_another_call_is_in_flight() -> None:
    tools = {"x.long": fake(delay="10m"), "x.flaky": flaky()}
    async with TestEngine(tools) as engine:
        task = await engine.start(plan_of(LONG, {"id": "short", "tool": "x.flaky", "needs": []}))
        await engine.clock.advance("30s")
        assert tools["x.flaky"].count == 2
        assert (await task.refresh()).status == "running"
        await engine.clock.advance("10m")
        assert (await task.refresh()).status == "completed"


async def test_a_wait_ends_while_another_call_is_in_flight() -> None:
    tools = {"x.long": fake(delay="10m"), "x.next": fake()}
    wait = {"id": "rest", "tool": "wait", "with": {"for": "20s"}, "needs": []}
    async with TestEngine(tools) as engine:
        await engine.start(plan_of(LONG, wait, {"id": "next", "tool": "x.next", "needs": ["rest"]}))
        await engine.clock.advance("30s")
        assert tools["x.next"].count == 1
        await engine.clock.advance("10m")


async def test_a_last_step_is_retried_too() -> None:
    tools = {"x.work": fake(), "x.flaky": flaky()}
    async with TestEngine(tools) as engine:
        task = await engine.start(
            plan_of({"id": "work", "tool": "x.work"}, **{"finally": [{"id": "tidy", "tool": "x.flaky"}]})
        )
        await engine.clock.advance("30s")
        assert tools["x.flaky"].count == 2
        assert (await task.refresh()).status == "completed"


async def test_resuming_starts_what_is_ready_beside_a_question() -> None:
    tools = {"x.first": fake(delay="10s"), "x.second": fake(), "x.odd": fake(delay="10s", raises=ValueError("no"))}
    async with TestEngine(tools) as engine:
        task = await engine.start(
            plan_of(
                {"id": "odd", "tool": "x.odd", "on_error": "pause"},
                {"id": "first", "tool": "x.first", "needs": []},
                {"id": "second", "tool": "x.second", "needs": ["first"]},
            )
        )
        await engine.clock.advance("1s")
        await task.pause()
        await engine.clock.advance("20s")
        assert tools["x.second"].count == 0
        await task.resume()
        await engine.clock.advance("1s")
        assert tools["x.second"].count == 1
        assert (await task.refresh()).status == "paused"
