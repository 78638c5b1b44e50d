"""What each category earns, in virtual time: ladders, deadlines, backoffs that a restart does not begin anew."""

import asyncio
from typing import Any

import pytest

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.failure import Failure
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.ports.tool import Call, ResourceExceeded, Transient
from everstep.testing.engine import TestEngine
from everstep.testing.fakes import fake


def plan_of(tool_name: str, given: JsonObject | None = None, /, **keys: JsonValue) -> Plan:
    step: JsonObject = {"id": "a", "tool": tool_name, "with": given or {}, **keys}
    return Plan.from_dict({"name": "p", "steps": [step], "outputs": {"a": "${a}"}})


async def finish(engine: TestEngine, task: Task, after: str = "20m") -> Result:
    waiting = asyncio.create_task(task.result(on_pause="return"))
    await engine.clock.advance(after)
    return await asyncio.wait_for(waiting, 60)


async def events(task: Task, *types: str) -> list[dict[str, Any]]:
    return [dict(event.data) async for event in task.events(follow=False) if event.type in types]


class Pages:
    """A tool that runs out of memory, and knows how to ask for less."""

    def __init__(self, enough: int, rungs: int = 2, *, broken: bool = False) -> None:
        self.enough, self.rungs, self.broken = enough, rungs, broken
        self.called: list[tuple[int, bool]] = []

    def degrade(self, call: Call, level: int, cause: Failure) -> Call | None:
        assert cause.category == "resource"
        if self.broken:
            raise ZeroDivisionError
        if level > self.rungs:
            return None
        less: JsonObject = {**call.arguments, "pages": int(str(call.arguments["pages"])) // 10}
        less.pop("media", None)
        return Call(tool=call.tool, arguments=less)

    def tools(self) -> list[object]:
        @tool("pages.read", effect="once", degrade=self.degrade)
        async def read(pages: int, media: bool = False) -> int:
            """Read pages."""
            self.called.append((pages, media))
            if pages > self.enough:
                raise ResourceExceeded("too much", limit="memory", used=pages, max=self.enough)
            return pages

        return [read]


@pytest.mark.req("L.4", "TR.3", "DoD.4")
async def test_what_ran_out_is_tried_with_less_one_rung_at_a_time() -> None:
    pages = Pages(enough=5)
    async with TestEngine(pages.tools()) as engine:
        task = await engine.start(plan_of("pages.read", {"pages": 500, "media": True}))
        assert (await finish(engine, task)).outputs == {"a": 5}
        assert pages.called == [(500, True), (50, False), (5, False)]
        scheduled = await events(task, "step.retry_scheduled")
        assert [one["degraded"] for one in scheduled] == [
            {"level": 1, "changes": {"set": {"pages": 50}, "drop": ["media"]}},
            {"level": 2, "changes": {"set": {"pages": 5}, "drop": ["media"]}},
        ]
        assert [one["retry"]["count"] for one in scheduled] == [1, 2]
        started = await events(task, "attempt.started")
        assert [one["degraded"] and one["degraded"]["level"] for one in started] == [None, 1, 2]
        (done,) = await events(task, "step.completed")
        assert done["degraded"]["level"] == 2


@pytest.mark.req("L.4")
@pytest.mark.parametrize(
    ("pages", "keys", "calls"),
    [
        (Pages(enough=0), {}, 3),
        (Pages(enough=0, rungs=1), {}, 2),
        (Pages(enough=0, rungs=0), {}, 1),
        (Pages(enough=0, broken=True), {}, 1),
        (Pages(enough=0), {"retry": 0}, 1),
    ],
)
async def test_a_ladder_ends(pages: Pages, keys: JsonObject, calls: int) -> None:
    async with TestEngine(pages.tools()) as engine:
        task = await engine.start(plan_of("pages.read", {"pages": 500}, **keys))
        assert (await finish(engine, task)).status == "failed"
        assert len(pages.called) == calls
        await task.refresh()
        assert task.error is not None
        assert task.error["details"] == {"limit": "memory", "used": pages.called[-1][0], "max": 0}


async def test_a_crash_between_two_rungs_keeps_the_rung() -> None:
    pages = Pages(enough=50)
    async with TestEngine(pages.tools()) as engine:
        task = await engine.start(plan_of("pages.read", {"pages": 500}))
        await engine.clock.advance("1ms")
        await engine.crash()
        assert (await finish(engine, await engine.get(task.id))).outputs == {"a": 50}
        assert pages.called == [(500, False), (50, False)]


@pytest.mark.req("8.2", "L.1")
async def test_a_restart_inside_a_backoff_waits_only_the_rest() -> None:
    flaky = fake(raises=[Transient("later", retry_after="30s"), None], returns=1, effect="pure")
    async with TestEngine({"net.get": flaky}) as engine:
        task = await engine.start(plan_of("net.get"))
        await engine.clock.advance("1ms")
        assert flaky.count == 1
        await engine.crash(down="20s")
        await engine.clock.advance("9s")
        assert flaky.count == 1
        await engine.clock.advance("2s")
        assert flaky.count == 2
        assert (await (await engine.get(task.id)).result()).status == "completed"


@pytest.mark.parametrize(
    ("keys", "seconds"),
    [({"retry": {"times": 20, "within": "1m"}}, 60), ({"retry": 20, "timeout": "2m"}, 20 * 60), ({"retry": 20}, 600)],
)
async def test_a_step_has_a_deadline_over_its_attempts_and_waits(keys: JsonObject, seconds: int) -> None:
    down = fake(raises=Transient("later", retry_after="300s"), effect="pure")
    async with TestEngine({"net.get": down}, config={"engine.step_timeout": "60s"}) as engine:
        task = await engine.start(plan_of("net.get", None, **keys))
        assert (await finish(engine, task, "1h")).status == "failed"
        assert down.count == seconds // 300 + 1


async def test_time_that_stands_still_does_not_count() -> None:
    down = fake(raises=Transient("later", retry_after="50s"), effect="pure")
    async with TestEngine({"net.get": down}) as engine:
        task = await engine.start(plan_of("net.get", retry={"times": 20, "within": "70s"}))
        await engine.clock.advance("10s")
        await task.pause()
        await engine.clock.advance("1h")
        assert down.count == 1
        await task.resume()
        assert (await finish(engine, task, "1h")).status == "failed"
        assert down.count == 3, "at 0 s, after the pause at 10 s, and at 60 s of its own time"


async def test_the_last_attempt_is_cut_at_the_deadline() -> None:
    slow = fake(delay="50s", raises=[Transient("later"), None], effect="pure")
    async with TestEngine({"net.get": slow}) as engine:
        task = await engine.start(plan_of("net.get", retry={"times": 3, "within": "70s"}, timeout="1m"))
        await engine.clock.advance("71s")
        await task.refresh()
        assert (task.status, slow.count) == ("failed", 2)
