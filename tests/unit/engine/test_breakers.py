"""Breakers on the real engine: shared by all tasks, kept over a crash, one probe, waiting that costs no retry."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.breaker import Breaker, BreakerKey, BreakerPolicy, BreakerState, Caller, Permit
from everstep.domain.ids import Instant, StepPath, TaskId, WorkerId
from everstep.domain.outcome import Succeeded
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine.breakers import Breakers
from everstep.facade.task import Task
from everstep.ports.tool import Impossible, Transient
from everstep.testing.engine import TestEngine
from everstep.wire.values import Codec

OPEN_MS = 30_000


def test_an_answer_that_comes_late_does_not_bring_back_a_permit() -> None:
    me, key = WorkerId("w_me"), BreakerKey("local", "net.get", "a")
    prober = Caller(task=TaskId("t_1"), step=StepPath("a"), attempt=2)
    permit = Permit(caller=prober, worker=me, until=Instant(600_000))
    probing = Breaker(key=key, state=BreakerState.HALF_OPEN, permit=permit)
    breakers = Breakers(BreakerPolicy())
    breakers.learned((probing,))
    assert breakers.holds_back(breakers.troubled[key], Instant(0), me) == permit.until
    assert breakers.verdict(key, prober, Succeeded(Codec().seal({})), Instant(1)) is not None
    for told in (replace(probing, permit=None, successes=1), probing):
        breakers.learned((told,))
        assert breakers.holds_back(breakers.troubled[key], Instant(2), me) is None, "its probe has ended here"


class Service:
    """A server that is up or down, and counts."""

    def __init__(self) -> None:
        self.up = False
        self.calls: list[str] = []
        self.error: Exception = Transient("503")
        self.slow: asyncio.Event | None = None

    def tools(self) -> list[object]:
        @tool("net.get", effect="pure", target="host", retry=0)
        async def get(host: str = "a", n: int = 0) -> dict[str, int]:
            """Ask the server."""
            self.calls.append(host)
            if self.slow is not None:
                await self.slow.wait()
            if not self.up:
                raise self.error
            return {"n": n}

        @tool("net.other", effect="pure")
        async def other() -> dict[str, int]:
            """Another way."""
            return {"n": -1}

        return [get, other]


def plan_of(**keys: JsonValue) -> Plan:
    step: JsonObject = {"id": "a", "tool": "net.get", "with": {"host": "${inputs.host}"}, **keys}
    return Plan.from_dict({"name": "p", "inputs": {"host": "string"}, "steps": [step], "outputs": {"n": "${a.n}"}})


async def start(engine: TestEngine, host: str = "a", **keys: JsonValue) -> Task:
    task = await engine.start(plan_of(**keys), {"host": host})
    await engine.clock.advance("1ms")
    return task


async def trip(engine: TestEngine, host: str = "a") -> None:
    """Five failures in a row."""
    for _ in range(5):
        await start(engine, host)


async def only(engine: TestEngine) -> Breaker:
    (breaker,) = await engine.store.troubles.breakers()
    return breaker


async def types(task: Task) -> list[str]:
    return [event.type async for event in task.events(follow=False)]


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.mark.req("8.3", "TR.3", "DoD.4")
async def test_five_failures_open_it_and_the_sixth_call_is_not_made(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        assert len(service.calls) == 5
        assert (await only(engine)).state == "open"
        held = await start(engine)
        assert len(service.calls) == 5
        await held.refresh()
        step = held.steps["a"]  # type: ignore[index]
        assert (step.status, step.phase) == ("running", "waiting_slot")
        assert step.wait is not None
        assert (step.wait.kind, step.wait.ref) == ("breaker", (await only(engine)).key.id)
        assert (await types(held))[-2:] == ["step.started", "step.waiting"]
        elsewhere = await start(engine, "b")
        assert service.calls[-1] == "b", "another target has a breaker of its own"
        await elsewhere.refresh()
        assert elsewhere.status == "failed"
        assert await engine.store.check() == []


async def test_who_has_left_does_not_take_the_place_of_the_next_probe(service: Service) -> None:
    """Asking for a task by its key is no new waiter, and a cancelled one waits no longer."""
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        first = await start(engine)
        gone = await start(engine)
        kept = await engine.start(plan_of(), {"host": "a"}, key="k")
        await engine.start(plan_of(), {"host": "a"}, key="k")
        await engine.clock.advance("1s")
        await gone.cancel()
        service.up = True
        await engine.clock.advance("32s")
        assert [(await asyncio.wait_for(task.result(), 60)).status for task in (first, kept)] == ["completed"] * 2


@pytest.mark.req("8.3")
async def test_after_the_cool_down_one_probe_although_three_wait(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        waiting = [await start(engine) for _ in range(3)]
        await engine.clock.advance("29s")
        assert len(service.calls) == 5
        service.slow = asyncio.Event()
        await engine.clock.advance("2s")
        assert len(service.calls) == 6, "exactly one probe"
        breaker = await only(engine)
        assert breaker.state == "half_open"
        assert breaker.permit is not None
        service.up = True
        service.slow.set()
        await engine.clock.advance("1s")
        results = [await asyncio.wait_for(task.result(), 60) for task in waiting]
        assert [result.status for result in results] == ["completed"] * 3
        assert await engine.store.troubles.breakers() == [], "two successes close it, and nothing is left"
        assert await engine.store.check() == []


async def test_a_failed_probe_doubles_the_time(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        opened = await only(engine)
        assert opened.retry_at is not None
        assert opened.opened_at is not None
        assert opened.retry_at - opened.opened_at == OPEN_MS
        probe = await start(engine)
        await engine.clock.advance("31s")
        again = await only(engine)
        assert again.retry_at is not None
        assert again.opened_at is not None
        assert (again.state, again.retry_at - again.opened_at) == ("open", 2 * OPEN_MS)
        await probe.refresh()
        assert probe.status == "failed"


@pytest.mark.req("8.3")
async def test_a_restart_keeps_it_open_and_lets_one_probe_through(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        waiting = [await start(engine) for _ in range(2)]
        await engine.crash()
        assert (await only(engine)).state == "open"
        await engine.clock.advance("20s")
        assert len(service.calls) == 5
        service.slow = asyncio.Event()
        await engine.clock.advance("11s")
        assert len(service.calls) == 6
        await engine.crash()  # the probe dies with its worker
        assert (await only(engine)).state == "half_open"
        await engine.clock.advance("1s")
        assert len(service.calls) == 7, "its permit has lapsed: another probe"
        service.up = True
        service.slow.set()
        await engine.clock.advance("20m")
        for task in waiting:
            again = await engine.get(task.id)
            assert (await asyncio.wait_for(again.result(), 60)).status == "completed"


async def test_a_fallback_goes_on_at_once(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        task = await start(engine, fallback=[{"tool": "net.other"}])
        assert (await task.result()).outputs == {"n": -1}
        assert len(service.calls) == 5
        told = [dict(event.data) async for event in task.events(follow=False) if event.type == "step.fallback"]
        assert [(one["tool_requested"], one["tool_used"], one["reason"]) for one in told] == [
            ("net.get", "net.other", "breaker_open")
        ]


async def test_waiting_costs_no_retry_but_the_deadline(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        patient = await start(engine, retry={"times": 1})
        hurried = await start(engine, retry={"times": 1, "within": "10s"})
        await hurried.refresh()
        assert hurried.status == "failed"
        assert hurried.error is not None
        assert hurried.error["code"] == "breaker_open"
        await engine.clock.advance("31s")
        assert len(service.calls) == 6
        await patient.refresh()
        step = patient.steps["a"]  # type: ignore[index]
        assert (patient.status, step.retries) == ("running", 1), "the probe failed, and its one retry is still to come"


@pytest.mark.parametrize("by_step", [True, False])
async def test_a_named_breaker_is_shared_by_name(service: Service, by_step: bool) -> None:
    async with TestEngine(service.tools()) as engine:
        for host in "abcde":
            await start(engine, host, **({"breaker": "shop"} if by_step else {}))
        await start(engine, "f", **({"breaker": "shop"} if by_step else {}))
        assert len(service.calls) == (5 if by_step else 6)


@pytest.mark.req("8.3")
async def test_a_named_breaker_has_rules_of_its_own(service: Service) -> None:
    config: JsonObject = {"breakers": {"shop": {"failures": 2, "cool_down": "5s"}}}
    async with TestEngine(service.tools(), config=config) as engine:
        for host in "abcd":
            await start(engine, host, breaker="shop")
        assert len(service.calls) == 2
        assert (await only(engine)).state == "open"
        service.up = True
        await engine.clock.advance("6s")
        assert len(service.calls) > 2, "it was asked again after its own time"
        service.up, before = False, len(service.calls)
        await trip(engine, "other")
        assert len(service.calls) == before + 5, "the others keep to the usual rules"


async def test_what_says_nothing_about_the_other_side_does_not_count(service: Service) -> None:
    service.error = Impossible("no")
    async with TestEngine(service.tools()) as engine:
        for _ in range(9):
            await start(engine)
        assert len(service.calls) == 9
        assert await engine.store.troubles.breakers() == []


async def test_half_of_the_last_calls_opens_it_too(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        for turn in range(12):
            service.up = turn % 2 == 0
            await start(engine)
        assert len(service.calls) == 10, "5 of 10"
        assert (await only(engine)).state == "open"


async def test_earlier_successes_count_against_opening(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        service.up = True
        for _ in range(12):
            await start(engine)
        for turn in range(8):
            service.up = turn % 2 == 0
            await start(engine)
        assert len(service.calls) == 20, "4 of 20"


async def test_a_reset_lets_those_who_wait_go_on(service: Service) -> None:
    async with TestEngine(service.tools()) as engine:
        await trip(engine)
        held = await start(engine)
        service.up = True
        who = engine.who
        shown = await engine.desk.troubles.breakers(who)
        assert [(one.breaker.key.target, one.held) for one in shown] == [("a", ((held.id, "a"),))]
        await engine.desk.troubles.reset(shown[0].breaker.key.id, who)
        await engine.clock.advance("1ms")
        assert (await asyncio.wait_for(held.result(), 60)).status == "completed"
        assert await engine.desk.troubles.breakers(who) == []


async def test_happy_calls_leave_nothing_in_the_store(service: Service, tmp_path: Path) -> None:
    service.up = True
    async with TestEngine(service.tools(), workspace=tmp_path) as engine:
        await start(engine)
        assert await engine.store.troubles.breakers() == []
        assert not engine.desk._kit.breakers.troubled


async def test_the_settings_say_when_it_opens_and_for_how_long(service: Service) -> None:
    config: JsonObject = {"breaker.failures": 2, "breaker.cool_down": "5s", "breaker.close_after": 1}
    async with TestEngine(service.tools(), config=config) as engine:
        waiting = [await start(engine) for _ in range(3)][-1]
        assert len(service.calls) == 2
        service.up = True
        await engine.clock.advance("6s")
        assert (await asyncio.wait_for(waiting.result(), 60)).status == "completed"
        assert await engine.store.troubles.breakers() == []
