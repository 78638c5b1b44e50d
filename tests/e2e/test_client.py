"""The Python client at a real server: the operations, and streams that go on over cuts, kills and closed ways."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from everstep import tool
from everstep.client import BlockingClient, Client, rules
from everstep.domain.errors import EverstepError, NotFound, Unavailable
from tests.e2e.commands import Project
from tests.e2e.cutting import Mortal, Proxy, naps, under_fire
from tests.e2e.served import Served, served
from tests.ports import free_port

ASK = {"name": "ask", "steps": [{"id": "q", "tool": "ask", "with": {"question": "Which colour?"}}]}


@tool("test.step", effect="pure")
async def step(seconds: float = 0.0) -> str:
    """A little later; some take what is in its result for the end of a line."""
    await asyncio.sleep(seconds)
    return "done\u2028\x85"


def steps(count: int, seconds: float) -> dict[str, Any]:
    return {
        "name": "steps",
        "steps": [{"id": f"s{n}", "tool": "test.step", "with": {"seconds": seconds}} for n in range(count)],
    }


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path, [step]) as one:
        yield one


@pytest.fixture
async def client(server: Served) -> AsyncIterator[Client]:
    async with Client(server.url, token=server.token) as one:
        yield one


# --- operations ---


async def test_a_task_from_its_creation_to_its_answer(client: Client) -> None:
    task = await client.create(plan=ASK, title="Colours", key="colours-1")
    again = await client.create(plan=ASK, title="Colours", key="colours-1")
    assert again["id"] == task["id"]
    seen = 0
    async for event in client.events(task["id"]):
        seen = event["seq"]
        if event["type"] == "task.paused":
            break
    (pause,) = (await client.inbox())["items"]
    await client.answer(pause["id"], "answer", value="blue")
    rest = [event async for event in client.events(task["id"], after=seen, until_end=True)]
    assert (rest[0]["type"], rest[-1]["type"]) == ("pause.answered", "task.completed")
    assert (await client.get("colours-1"))["status"] == "completed"
    assert [one["id"] async for one in client.tasks(status="completed")] == [task["id"]]
    assert (await client.list(limit=1))["items"][0]["title"] == "Colours"


async def test_refusals_are_what_they_were(client: Client, server: Served) -> None:
    with pytest.raises(NotFound, match="no such task"):
        await client.get("t_unknown")
    with pytest.raises(EverstepError) as info:
        await client.create(plan={"name": "bad"})
    assert info.value.code == "plan_invalid"
    assert info.value.details["problems"]
    async with Client(server.url, token="es_wrong") as stranger:
        with pytest.raises(EverstepError) as info:
            await stranger.get("t_1")
        assert info.value.code == "unauthenticated"
        with pytest.raises(EverstepError) as info:
            await anext(aiter(stranger.events("t_1")))
        assert info.value.code == "unauthenticated"
    async with Client(f"http://127.0.0.1:{free_port()}") as nobody:
        with pytest.raises(Unavailable):
            await nobody.get("t_1")


async def test_a_stream_of_nothing_stops(client: Client) -> None:
    with pytest.raises(NotFound):
        await anext(aiter(client.events("t_unknown")))


async def test_a_place_that_is_not_there_is_never_skipped(client: Client) -> None:
    task = await client.create(plan=steps(1, 0))
    with pytest.raises(EverstepError) as info:
        await anext(aiter(client.events(task["id"], after=999)))
    assert (info.value.code, info.value.details["reason"]) == ("resync_required", "ahead")
    frames = client.frames(task["id"], 999, until_end=True)
    kinds = [frame["type"] async for frame in frames]
    assert kinds[:3] == ["hello", "resync_required", "snapshot"]


def test_the_same_without_await(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="es-") as folder:
        mortal = Mortal(Project(Path(folder)))
        asyncio.run(mortal.start())
        try:
            with BlockingClient(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
                task = client.create(plan=naps(2, 0.01))
                seqs = [event["seq"] for event in client.events(task["id"], until_end=True)]
                assert seqs == list(range(1, len(seqs) + 1))
                assert client.get(task["id"])["seq"] == seqs[-1]
                assert [one["id"] for one in client.tasks()] == [task["id"]]
        finally:
            mortal.kill()


# --- ways ---


@pytest.mark.parametrize("way", ["websocket", "sse", "poll"])
async def test_every_way_tells_the_same(server: Served, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(rules, "FIRST_S", 0.01)
    proxy = Proxy(int(server.url.rpartition(":")[2]))
    proxy.refuses_upgrades = way != "websocket"
    proxy.refuses_streams = way == "poll"
    async with proxy.standing(), Client(f"http://127.0.0.1:{proxy.port}", token=server.token) as client:
        task = await client.create(plan=steps(5, 0.02))
        events = [event async for event in client.events(task["id"], until_end=True)]
        page = await client.request("GET", f"/v1/tasks/{task['id']}/events?after=0&limit=500")
        assert events == page["events"]
        chosen = [event async for event in client.events(task["id"], types="attempt.", until_end=True)]
        assert [event["type"] for event in chosen] == ["attempt.started"] * 5
        assert await until_completed(client) == [event["seq"] for event in events]


# --- cuts and kills ---


@pytest.mark.req("3.6", "W.3", "TI.3")
async def test_cut_again_and_again_and_the_server_killed_it_gets_every_event_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_S", 0.05)
    monkeypatch.setattr(rules, "LONGEST_S", 0.5)
    async with under_fire() as fire, Client(fire.url, token=fire.mortal.token) as client:
        await fire.endure(collected(client, fire.task), until_completed(client))


async def collected(client: Client, task: str) -> list[int]:
    return [event["seq"] async for event in client.events(task, until_end=True)]


async def until_completed(client: Client) -> list[int]:
    seqs = []
    async for event in client.events(after="0-00000000"):
        seqs.append(event["seq"])
        if event["type"] == "task.completed":
            break
    return seqs
