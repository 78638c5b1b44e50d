"""Results of pure tools that are given again: to the same owner, for the same arguments, while they are young."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep import Plan, Transient, tool
from everstep.domain.values import JsonObject, JsonValue
from everstep.testing import TestEngine
from tests.unit.doors.api.window import ANA, EVE, Window


class Rates:
    """A tool that is slow to answer, and counts."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.wait = asyncio.Event()
        self.wait.set()
        self.fails = 0

    def all(self) -> list[Any]:
        @tool.pure("rates.of", cache_ttl="10m")
        async def of(currency: str, pad: int = 0) -> dict[str, object]:
            """What it is worth."""
            self.calls.append(currency)
            await self.wait.wait()
            if self.fails:
                self.fails -= 1
                raise Transient("not now")
            return {"rate": len(self.calls), "pad": "x" * pad}

        return [of]


@pytest.fixture
def rates() -> Rates:
    return Rates()


@pytest.fixture
async def engine(rates: Rates) -> AsyncIterator[TestEngine]:
    async with TestEngine(rates.all(), config={"cache.bytes": "100KB"}) as opened:
        yield opened
        assert await opened.store.check() == []


def plan_of(**arguments: JsonValue) -> Plan:
    plan = Plan("rates")
    plan.step("ask", "rates.of", {"currency": "EUR", **arguments}, retry=0)
    plan.output(rate=plan.expr("ask.rate"))
    return plan


async def ran(engine: TestEngine, **arguments: JsonValue) -> tuple[JsonValue, Any]:
    """The rate, and what its step says of its age."""
    task = await engine.start(plan_of(**arguments))
    result = await task.result()
    assert result.status == "completed", result.error
    step = await Window(engine).good("GET", f"/v1/tasks/{task.id}/steps/ask")
    return (result.outputs or {})["rate"], step["cached"]


@pytest.mark.req("R.6")
async def test_a_result_is_given_again_while_it_is_young(engine: TestEngine, rates: Rates) -> None:
    assert await ran(engine) == (1, None)
    await engine.clock.advance("9m")
    assert await ran(engine) == (1, {"age_s": 540.0})
    assert await ran(engine, cache="off") == (2, None)
    assert await ran(engine, currency="USD") == (3, None)
    await engine.clock.advance("2m")
    assert await ran(engine) == (4, None)
    assert rates.calls == ["EUR", "EUR", "USD", "EUR"]


@pytest.mark.req("R.6")
async def test_whoever_asks_meanwhile_waits_and_failures_are_not_kept(engine: TestEngine, rates: Rates) -> None:
    rates.wait.clear()
    rates.fails = 1
    tasks = [await engine.start(plan_of()) for _ in range(3)]
    await engine.clock.settle()
    assert len(rates.calls) == 1
    rates.wait.set()
    results = [await task.result() for task in tasks]
    assert sorted(result.status for result in results) == ["completed", "completed", "failed"]
    assert len(rates.calls) == 2, "one that failed, one for both others"


async def test_a_kept_result_is_held_against_the_limits_of_whoever_gets_it(engine: TestEngine) -> None:
    assert await ran(engine, pad=200) == (1, None)
    strict = Plan("strict")
    strict.step("ask", "rates.of", {"currency": "EUR", "pad": 200}, retry=0, limits={"output": "100B"})
    result = await (await engine.start(strict)).result()
    assert (result.status, (result.error or {})["code"]) == ("failed", "limit_output")
    assert (await ran(engine, pad=200))[1] is not None, "it is still kept for the others"


@pytest.mark.req("R.6")
async def test_others_do_not_see_it_and_the_least_used_goes_first(engine: TestEngine, rates: Rates) -> None:
    window = Window(engine)
    body: JsonObject = {"plan": plan_of().to_dict()}
    for who in (ANA, EVE):
        await window.good("POST", "/v1/tasks", body, who=who)
        await engine.clock.settle()
    assert len(rates.calls) == 2
    for n in range(3):
        await ran(engine, pad=40_000 + n)
    assert len(rates.calls) == 5
    assert (await ran(engine, pad=40_002))[1] is not None
    assert (await ran(engine, pad=40_000))[1] is None, "there is room for two of them"


def test_only_what_is_pure_can_be_given_again() -> None:
    with pytest.raises(TypeError, match="cache_ttl= is for tools whose effect is 'pure'"):

        @tool("rates.pay", cache_ttl="1m")
        def pay() -> None:
            """Pay."""
