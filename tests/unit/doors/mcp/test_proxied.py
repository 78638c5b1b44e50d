"""Calls through the proxy: a tool that usually takes long is a task at once; what the server says is passed on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from everstep import tool
from everstep.doors.api import Api
from everstep.doors.mcp.calls import KEY
from everstep.doors.mcp.channel import OwnChannel
from everstep.doors.mcp.desk import DoorDesk, DoorLimits
from everstep.doors.mcp.passed_on import RemoteCompletion, RemoteResources
from everstep.doors.mcp.proxy import ProxyCalls
from everstep.doors.mcp.published import Book
from everstep.doors.mcp.refusals import Refused
from everstep.doors.mcp.stdio import settled
from everstep.ports.tool import Misconfigured
from everstep.settings import load_settings
from everstep.testing import TestEngine
from tests.unit.doors.mcp.stage import NEW, OLD, Stage, stage

TAKES_S = 6
CALLS = 12
"""So many that there is something to go by."""


@pytest.mark.req("X.5")
async def test_a_tool_that_usually_takes_long_is_a_task_at_once() -> None:
    called, go = asyncio.Event(), asyncio.Event()

    @tool.pure("mcp.little.slow")
    async def slow() -> dict:  # type: ignore[type-arg]
        """Takes its time"""
        called.set()
        await go.wait()
        return {"text": "done", "content": [{"type": "text", "text": "done"}], "structured": None}

    async with TestEngine([slow]) as engine:
        api = Api(engine.desk, settings=load_settings({}, env={}), version="9.9")
        limits = DoorLimits(task_after_s=3600)
        desk = DoorDesk(OwnChannel(api), Book(()), limits, engine.clock.now)
        remote: Any = SimpleNamespace(name="little", tools=[{"name": "slow"}])
        calls = ProxyCalls(desk, remote)
        for _ in range(CALLS):
            called.clear()
            go.clear()
            calling = asyncio.ensure_future(calls.call(OLD, "slow", {}, {}))
            await called.wait()
            await engine.clock.advance(f"{TAKES_S}s")
            go.set()
            assert (await calling)["content"] == [{"type": "text", "text": "done"}]
        go.clear()
        made = await calls.call(NEW, "slow", {}, {})
        assert made["resultType"] == "task"
        go.set()


@pytest.mark.req("X.5")
async def test_a_call_of_a_client_that_waits_costs_one_request_and_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked or read twice, and nobody works out how long it will take if nobody is told."""

    @tool.pure("mcp.little.add")
    async def add(n: int) -> dict:  # type: ignore[type-arg]
        """Add"""
        return {"text": str(n), "content": [{"type": "text", "text": str(n)}], "structured": None}

    async with TestEngine([add]) as engine:
        api = Api(engine.desk, settings=load_settings({}, env={}), version="9.9")
        asked: list[str] = []
        forecasts: list[object] = []
        engine.desk.forecast = _Counting(forecasts)  # type: ignore[assignment]
        read: list[str] = []
        for name in ("load_tasks", "read_events", "find_task", "get_payloads"):
            monkeypatch.setattr(engine.store, name, _noting(read, name, getattr(engine.store, name)))

        class Channel(OwnChannel):
            async def request(self, caller: Any, ask: Any) -> tuple[int, bytes]:
                asked.append(f"{ask.method} {ask.path.partition('?')[0]}")
                return await super().request(caller, ask)

        desk = DoorDesk(Channel(api), Book(()), DoorLimits(), engine.clock.now)
        remote: Any = SimpleNamespace(name="little", tools=[{"name": "add"}])
        said = await ProxyCalls(desk, remote).call(OLD, "add", {"n": 1}, {})
        assert said["content"] == [{"type": "text", "text": "1"}]
        assert asked == ["POST /v1/tasks"]
        assert (forecasts, read) == ([], []), "what becomes of it is heard as it is written"


@pytest.mark.req("X.5")
@pytest.mark.parametrize("way", ["short", "long", "failed", "asks"])
async def test_who_is_told_the_end_and_who_reads_it_get_the_same(way: str) -> None:
    """The last event says what the whole journal does; what it does not say is read."""

    @tool("mcp.little.do", approve=way == "asks")
    async def do() -> dict:  # type: ignore[type-arg]
        """Do it"""
        if way == "failed":
            raise Misconfigured("not so", code="no_way", details={"content": [{"type": "text", "text": "not so"}]})
        text = "done" * (50_000 if way == "long" else 1)
        return {"text": text, "content": [{"type": "text", "text": text}], "structured": {"n": 1}}

    class Reading(OwnChannel):
        async def request(self, caller: Any, ask: Any) -> tuple[int, bytes]:
            return await super().request(caller, replace(ask, stays=False))

    async with TestEngine([do]) as engine:
        api = Api(engine.desk, settings=load_settings({}, env={}), version="9.9")
        remote: Any = SimpleNamespace(name="little", tools=[{"name": "do"}])
        said = []
        for channel in (OwnChannel(api), Reading(api)):
            desk = DoorDesk(channel, Book(()), DoorLimits(), engine.clock.now)
            said.append(await ProxyCalls(desk, remote).call(OLD, "do", {}, {}))
    for one in said:
        if way == "asks":  # each call has a task of its own
            assert one["structuredContent"]["error"].pop("details")["task_id"]
    assert said[0] == said[1]
    assert said[0]["isError"] is (way in ("failed", "asks"))


async def test_who_comes_back_after_an_answer_gets_the_result() -> None:
    """The call waited for leave when its client went; the one who asks again is not told of a question that is over."""

    @tool("mcp.little.drop", approve=True)
    async def drop() -> dict:  # type: ignore[type-arg]
        """Drop it"""
        return {"text": "gone", "content": [{"type": "text", "text": "gone"}], "structured": None}

    async with TestEngine([drop]) as engine:
        api = Api(engine.desk, settings=load_settings({}, env={}), version="9.9")
        desk = DoorDesk(OwnChannel(api), Book(()), DoorLimits(), engine.clock.now)
        remote: Any = SimpleNamespace(name="little", tools=[{"name": "drop"}])
        calls, key = ProxyCalls(desk, remote), {KEY: "order-1"}
        assert (await calls.call(OLD, "drop", {}, key))["isError"]
        pause = engine.inbox.only()
        await pause.approve()
        again = await asyncio.wait_for(calls.call(OLD, "drop", {}, key), 60)
        assert again["content"] == [{"type": "text", "text": "gone"}]
        await asyncio.wait_for(settled(desk.channel, "local"), 60)


async def test_nobody_leaves_before_a_call_that_waited_for_leave_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client has gone: what is under way is waited for once, not asked after without end."""
    called, go, asked = asyncio.Event(), asyncio.Event(), []

    @tool("mcp.little.drop", approve=True)
    async def drop() -> dict:  # type: ignore[type-arg]
        """Drop it"""
        called.set()
        await go.wait()
        return {"text": "gone", "content": [], "structured": None}

    async with TestEngine([drop]) as engine:
        api = Api(engine.desk, settings=load_settings({}, env={}), version="9.9")
        desk = DoorDesk(OwnChannel(api), Book(()), DoorLimits(), engine.clock.now)
        remote: Any = SimpleNamespace(name="little", tools=[{"name": "drop"}])
        await ProxyCalls(desk, remote).call(OLD, "drop", {}, {})
        pause = engine.inbox.only()
        await pause.approve()
        await called.wait()
        handle = api.handle

        async def counted(request: Any) -> Any:
            asked.append(request.path)
            return await handle(request)

        monkeypatch.setattr(api, "handle", counted)
        leaving = asyncio.ensure_future(settled(desk.channel, "local"))
        await engine.clock.advance("1s")
        assert len(asked) == 2, "what is under way, and its end"
        assert not leaving.done()
        go.set()
        await asyncio.wait_for(leaving, 60)


def _noting(noted: list[str], name: str, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def noting(*args: Any) -> Any:
        noted.append(name)
        return await verb(*args)

    return noting


class _Counting:
    """Somebody who would work out how long a task takes."""

    def __init__(self, asked: list[object]) -> None:
        self._asked = asked

    async def of(self, state: object) -> None:
        self._asked.append(state)


def behind(on: Stage, **verbs: Any) -> tuple[RemoteResources, RemoteCompletion]:
    remote: Any = SimpleNamespace(**verbs)
    return RemoteResources(on.desk, remote), RemoteCompletion(on.desk, remote)


@pytest.mark.req("X.5")
async def test_subscriptions_and_completions_are_the_servers() -> None:
    async def updates(uri: str) -> Any:
        if uri == "note://none":
            raise Misconfigured("no such note", details={"number": -32002, "message": "Not there"})
        yield
        yield

    async def ask(method: str, params: Any) -> Any:
        return {"asked": [method, params["argument"]["value"]]}

    async with stage() as on:
        resources, completion = behind(on, updates=updates, ask=ask)
        assert [one async for one in await resources.updates(NEW, "note://one")] == [None, None]
        with pytest.raises(Refused, match="Not there") as info:
            await anext(aiter(await resources.updates(NEW, "note://none")))
        assert info.value.code == -32002
        said = await completion.complete(NEW, {"type": "ref/prompt", "name": "x"}, {"name": "a", "value": "b"})
        assert said == {"asked": ["completion/complete", "b"]}
