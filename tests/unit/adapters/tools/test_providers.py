"""Providers of searches: how they are, who stands in, how often and how much they may be asked."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, Self

import pytest

from everstep import Plan, tool
from everstep.domain.values import JsonObject
from everstep.ports.tool import Transient
from everstep.testing import TestEngine, crash_points, fake
from everstep.testing.rig import HttpRig, answer


class Provider(HttpRig):
    """A search engine that can be stopped and started; meanwhile nobody else gets its port."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port = self._held.getsockname()[1]
        self.on("/search", answer(200, {"results": [{"title": name, "url": "http://example.com/"}]}))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, reuse_port=True)
        return self

    @property
    def queries(self) -> int:
        """What was asked, but for how it is."""
        return sum(one.method == "GET" for one in self.asked)


@pytest.fixture
def main() -> Iterator[Provider]:
    provider = Provider("main")
    yield provider
    provider._held.close()


@pytest.fixture
def other() -> Iterator[Provider]:
    provider = Provider("other")
    yield provider
    provider._held.close()


def config_of(main: Provider, other: Provider, **more: Any) -> JsonObject:
    return {"search.providers": {"main": main.url("/search"), "other": other.url("/search")}, **more}


def searching(**more: Any) -> Plan:
    plan = Plan("searching")
    second = {"tool": "search.web", "with": {"query": "a", "provider": "other", "cache": "off"}}
    plan.step("hits", "search.web", {"query": "a", "cache": "off"}, **{"fallback": [second], "retry": 0, **more})
    plan.output(provider=plan.expr("hits.provider"))
    return plan


async def told(task: Any, *types: str) -> list[JsonObject]:
    return [event.data async for event in task.events(follow=False) if event.type in types]


async def run(engine: TestEngine, plan: Plan) -> tuple[Any, Any]:
    """In virtual time that stands still: the sockets are real ones."""
    task = await engine.start(plan)
    async with asyncio.timeout(60):
        return task, await task.result()


@tool("test.hold", effect="pure")
async def hold() -> None:
    """Something to do: nobody looks after tools while there is nothing."""
    await asyncio.Event().wait()


async def looked(engine: TestEngine, *, well: bool) -> None:
    """Until the rounds have found that out."""
    plan = Plan("holding")
    plan.step("hold", "test.hold", {}, timeout="1h")
    busy = await engine.start(plan)
    async with asyncio.timeout(60):
        assert engine._parts is not None
        while bool(engine._parts.runtime.kit.passage.wellness.unwell) is well:
            await engine.clock.advance("1s")
            await asyncio.sleep(0.01)
    await busy.cancel()


@pytest.mark.req("6.6", "TI.4", "8.6")
async def test_a_provider_that_stopped_is_stood_in_for_until_it_is_back(main: Provider, other: Provider) -> None:
    async with other, TestEngine([hold], config=config_of(main, other)) as engine:
        async with main:
            _, result = await run(engine, searching())
            assert result.outputs == {"provider": "main"}
        # Nobody has looked yet: the first call finds out, and its step goes on with the other.
        task, result = await run(engine, searching())
        assert result.outputs == {"provider": "other"}
        (fell,) = await told(task, "step.fallback")
        assert fell["reason"] == "net_refused"
        # Once it is known, nobody is kept waiting by the one that is down.
        await looked(engine, well=False)
        down_at, tried = engine.clock.now(), main.queries
        task, result = await run(engine, searching())
        assert result.outputs == {"provider": "other"}
        (fell,) = await told(task, "step.fallback")
        assert fell["reason"] == "tool_unhealthy"
        attempts = await told(task, "attempt.started")
        assert len(attempts) == 1
        async with main:
            await looked(engine, well=True)
            assert engine.clock.now() - down_at <= 60_000
            _, result = await run(engine, searching())
            assert result.outputs == {"provider": "main"}
            assert main.queries == tried + 1


@pytest.mark.req("6.6", "TI.4", "8.3")
async def test_each_provider_has_a_breaker_of_its_own(main: Provider, other: Provider) -> None:
    config = config_of(main, other, **{"breaker.failures": 2})
    async with other, TestEngine([hold], config=config) as engine:
        for _ in range(3):
            _, result = await run(engine, searching())
            assert result.outputs == {"provider": "other"}
        assert engine._parts is not None
        troubled = engine._parts.runtime.kit.breakers.troubled
        assert {(key.tool, key.target): one.state.value for key, one in troubled.items()} == {
            ("search.web", "main"): "open"
        }
        async with main:
            began = engine.clock.now()
            await engine.clock.advance("31s")
            _, result = await run(engine, searching())
            assert result.outputs == {"provider": "main"}
            assert engine.clock.now() - began <= 60_000


@pytest.mark.req("TI.4")
async def test_killed_in_every_phase_the_second_still_stands_in() -> None:
    plan = Plan("asking")
    asked = plan.step("hits", "first.ask", {"query": "a"}, fallback=[{"tool": "second.ask", "with": {"query": "a"}}])
    plan.output(hits=asked)
    tools = {
        "first.ask": fake(raises=Transient("down", code="net_refused"), effect="pure"),
        "second.ask": fake(returns={"found": 1}, effect="pure"),
    }
    results = [point.result async for point in crash_points(plan, tools=tools)]
    assert len(results) > 10
    assert all(one.outputs == {"hits": {"found": 1}} for one in results)


async def test_one_without_another_way_is_called_all_the_same(main: Provider, other: Provider) -> None:
    async with other, TestEngine([hold], config=config_of(main, other)) as engine:
        await looked(engine, well=False)
        async with main:
            _, result = await run(engine, searching(fallback=[]))
            assert result.outputs == {"provider": "main"}


@pytest.mark.req("Search.1")
async def test_a_daily_quota_of_each_provider(main: Provider, other: Provider) -> None:
    config = config_of(main, other, quotas={"search.main": 2})
    async with main, other, TestEngine([hold], config=config) as engine:
        said = [(await run(engine, searching()))[1].outputs["provider"] for _ in range(4)]
        assert said == ["main", "main", "other", "other"]
        await engine.close()
        await engine.open()
        task, result = await run(engine, searching(fallback=[]))
        assert (result.status, result.error["code"]) == ("failed", "quota_exhausted")
        assert (main.queries, other.queries) == (2, 2)
        assert [data["reason"] for data in await told(task, "step.fallback")] == []
        await engine.clock.advance("24h")
        assert (await run(engine, searching()))[1].outputs == {"provider": "main"}


@pytest.mark.req("Search.1", "7.5")
async def test_each_provider_has_a_rate_of_its_own(main: Provider, other: Provider) -> None:
    config = config_of(main, other, rates={"search.main": "1/10s"})
    async with main, other, TestEngine([hold], config=config) as engine:
        assert (await run(engine, searching()))[1].outputs == {"provider": "main"}
        began = engine.clock.now()
        task = await engine.start(searching())
        async with asyncio.timeout(60):
            waiting: Any = (await anext(event async for event in task.events() if event.type == "step.waiting")).data
        waiting = waiting["waiting_on"]
        assert (waiting["kind"], waiting["detail"]) == ("rate", "search.main")
        _, result = await run(engine, one_of("other"))
        assert result.outputs == {"provider": "other"}  # that of another is not touched
        assert main.queries == 1
        await engine.clock.advance("10s")
        assert (await task.result()).outputs == {"provider": "main"}
        assert engine.clock.now() - began >= 10_000


def one_of(provider: str) -> Plan:
    plan = Plan("searching")
    plan.step("hits", "search.web", {"query": "a", "provider": provider, "cache": "off"})
    plan.output(provider=plan.expr("hits.provider"))
    return plan


@pytest.mark.req("7.5", "Search.1")
async def test_nobody_is_without_a_rate(main: Provider, other: Provider) -> None:
    """A search engine 30 a minute, a host five a second, a handful of them together; also where nobody said so."""
    async with main, other, TestEngine([hold], config=config_of(main, other)) as engine:
        assert engine._parts is not None
        kit = engine._parts.runtime.kit
        usual = {
            tool: kit.passage.allowance(kit.catalog.get(tool).spec, "somewhere")
            for tool in ("search.web", "http.get", "http.post", "http.download")
        }
    rates = {tool: (one.provider, one.rate) for tool, one in usual.items() if one is not None and one.rate is not None}
    assert {tool: (name, rate.limit, rate.period_ms, rate.burst) for tool, (name, rate) in rates.items()} == {
        "search.web": ("search.somewhere", 30, 60_000, 10),
        "http.get": ("http.somewhere", 5, 1_000, 5),
        "http.post": ("http.somewhere", 5, 1_000, 5),
        "http.download": ("http.somewhere", 5, 1_000, 5),
    }
