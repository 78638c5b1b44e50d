"""Events over the network: WebSocket, server-sent events and long poll on one path, told alike."""

import asyncio
import json
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from everstep import tool
from everstep.domain.events import ActorKind
from everstep.facade.access import NewToken
from tests.e2e.served import Frame, Served, frame, served, until

BLOCK = "x" * 30_000


class Hold:
    """Calls that wait until they are let through."""

    def __init__(self) -> None:
        self.holding = asyncio.Event()
        self.release = asyncio.Event()

    def tools(self) -> list[object]:
        @tool("test.hold", effect="pure")
        async def hold() -> str:
            """Wait."""
            self.holding.set()
            await self.release.wait()
            return "done"

        @tool("test.big", effect="pure")
        async def big(n: int, times: int = 1) -> str:
            """Much."""
            return f"{n}{BLOCK * times}"

        return [hold, big]


HOLD = {"name": "hold", "steps": [{"id": "a", "tool": "test.hold"}]}


@pytest.fixture
def hold() -> Hold:
    return Hold()


@pytest.fixture
async def server(tmp_path: Path, hold: Hold) -> AsyncIterator[Served]:
    async with served(tmp_path, hold.tools(), **{"events.sockets_per_token": 3}) as one:
        yield one
        hold.release.set()


async def held(server: Served, hold: Hold) -> str:
    task = await server.start(HOLD)
    await hold.holding.wait()
    return task


def reader(owner: str) -> NewToken:
    return NewToken(
        name="reader", owner=owner, actor_kind=ActorKind.SERVICE, actor_id="reader", scopes=frozenset({"read"})
    )


def seqs(frames: list[Frame]) -> list[int]:
    return [one["event"]["seq"] for one in frames if one["type"] == "event"]


async def close_of(socket: Any) -> tuple[int, str]:
    with suppress(ConnectionClosed):
        while True:
            await socket.recv()
    return socket.close_code, socket.close_reason


# --- WebSocket ---


@pytest.mark.req("3.1", "W.3")
async def test_a_socket_tells_a_task_from_any_place_to_its_end(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    async with server.socket(f"/v1/tasks/{task}/events?after=1&until=end&ticks=0") as socket:
        assert socket.subprotocol == "everstep.v1"
        seen = await until(socket, "live")
        assert (seen[0]["type"], seen[0]["task"], seen[0]["head_seq"]) == ("hello", task, 3)
        hold.release.set()
        seen += [await frame(socket), await frame(socket)]
        assert seqs(seen) == [2, 3, 4, 5]
        assert await close_of(socket) == (1000, "until=end")
    async with server.socket(f"/v1/tasks/{task}/events") as socket:
        _, snapshot, live = await until(socket, "live")
        assert (snapshot["task"]["status"], snapshot["seq"], live["seq"]) == ("completed", 5, 5)


@pytest.mark.req("3.4", "W.3")
async def test_a_frame_of_a_completed_step_tells_how_it_went_and_where_all_of_it_is(server: Served) -> None:
    plan = {"name": "big", "steps": [{"id": "a", "tool": "test.big", "with": {"n": 7, "times": 3}}]}
    task = await server.start(plan)
    async with server.socket(f"/v1/tasks/{task}/events?after=0&until=end&types=step.completed") as socket:
        (told,) = [one["event"] for one in await until(socket, "event") if one["type"] == "event"]
    step = await server.good("GET", f"/v1/tasks/{task}/steps/a")
    assert step["status"] == "completed"
    assert (told["step"], told["data"]["attempt"], told["data"]["via"]) == ("a", 1, "tool")
    assert 0 <= told["data"]["duration_s"] < 10
    assert len((told["data"]["summary"] or "").encode()) <= 2048
    output = told["data"]["output"]
    assert len(output["preview"].encode()) <= 2048
    reply = await server.http.get(f"/v1/tasks/{task}/artifacts/{output['artifact']}")
    assert reply.status_code == 200
    assert json.loads(reply.content) == f"7{BLOCK * 3}"
    assert f"sha256:{sha256(reply.content).hexdigest()}" == output["artifact"]


@pytest.mark.req("3.3", "W.3", "5.3", "DoD.3")
async def test_ticks_come_at_most_four_times_and_at_least_once_a_second(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    async with server.socket(f"/v1/tasks/{task}/events") as socket:
        await until(socket, "live")
        first = (await until(socket, "tick"))[-1]
        second = (await until(socket, "tick"))[-1]
        gap = second["steps"][0]["elapsed_s"] - first["steps"][0]["elapsed_s"]
        assert 0.2 <= gap <= 1.5


async def test_a_ping_is_answered_and_nothing_else_may_be_said(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    async with server.socket(f"/v1/tasks/{task}/events?ticks=0") as socket:
        await until(socket, "live")
        await socket.send('{"type":"ping"}')
        assert (await frame(socket))["type"] == "heartbeat"
        await socket.send('{"type":"subscribe"}')
        assert (await close_of(socket))[0] == 4400
    async with server.socket(f"/v1/tasks/{task}/events?ticks=0") as socket:
        await until(socket, "live")
        for _ in range(50):
            await socket.send('{"type":"ping"}')
        assert (await close_of(socket))[0] == 1008
    async with server.socket(f"/v1/tasks/{task}/events?ticks=0") as socket:
        await until(socket, "live")
        await socket.send("x" * (64 * 1024 + 1))
        assert (await close_of(socket))[0] == 1009


async def test_text_that_is_none_ends_a_socket_and_nothing_is_told_of_it(
    server: Served, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    """Also in one breath with a close: that was a stack in the log, and no good-bye."""
    task = await held(server, hold)
    wrong, close = b"\x81\x82\0\0\0\0\xff\xfe", b"\x88\x82\0\0\0\0\x03\xe8"
    for said, code in ((wrong, 1007), (wrong + close, 1000)):
        async with server.socket(f"/v1/tasks/{task}/events?ticks=0") as socket:
            await until(socket, "live")
            socket.transport.write(said)
            assert (await close_of(socket))[0] == code
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


async def refused(server: Served, path: str, **more: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as info:
        async with server.socket(path, **more):
            pass
    said = info.value.response
    assert said.headers["content-type"] == "application/problem+json"
    return said.status_code, json.loads(said.body or b"")["error"]["code"]


@pytest.mark.req("3.1", "W.3")
async def test_who_may_not_watch_is_refused_before_the_socket_opens(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    path = f"/v1/tasks/{task}/events"
    assert await refused(server, path, token="es_wrong") == (401, "unauthenticated")
    assert await refused(server, "/v1/tasks/t_unknown/events") == (404, "not_found")
    assert await refused(server, f"{path}?after=x") == (400, "bad_request")
    assert await refused(server, f"{path}?until=noon") == (400, "bad_request")
    assert await refused(server, "/v1/tasks") == (400, "bad_request")
    assert await refused(server, path, headers={"origin": "https://evil.test"}) == (403, "origin_refused")


async def test_a_ticket_opens_its_path_once(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    path = f"/v1/tasks/{task}/events"
    access = server.engine.desk.access
    principal = await access.authenticate(server.token)
    assert principal is not None

    def with_ticket(at: str, ticket: str) -> Any:
        offered = [Subprotocol("everstep.v1"), Subprotocol(f"ticket.{ticket}")]
        return connect(f"ws{server.url.removeprefix('http')}{at}", subprotocols=offered, proxy=None)

    good = (await access.new_ticket(principal, path)).value
    async with with_ticket(path, good) as socket:
        assert socket.subprotocol == "everstep.v1"
        assert (await frame(socket))["type"] == "hello"
    elsewhere = (await access.new_ticket(principal, path)).value
    for at, ticket in ((path, good), (path, "nonsense"), ("/v1/events", elsewhere), (path, elsewhere)):
        with pytest.raises(InvalidStatus) as info:
            await with_ticket(at, ticket)
        assert info.value.response.status_code == 401


@pytest.mark.req("3.1", "W.3")
async def test_a_task_of_somebody_else_is_an_unknown_task(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    eve = await server.engine.desk.access.issue(reader("eve"))
    for path in (f"/v1/tasks/{task}/events", "/v1/tasks/t_unknown/events"):
        assert await refused(server, path, token=eve.value) == (404, "not_found")
    async with server.socket("/v1/events?after=0-00000000", token=eve.value) as socket:
        assert [one["type"] for one in await until(socket, "live")] == ["hello", "live"]


async def test_a_revoked_token_ends_its_streams(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    issued = await server.engine.desk.access.issue(reader("local"))
    async with server.socket(f"/v1/tasks/{task}/events?ticks=0", token=issued.value) as socket:
        await until(socket, "live")
        await server.engine.desk.access.revoke(issued.credential.id)
        async with asyncio.timeout(60):
            assert (await close_of(socket))[0] == 4401


async def test_streams_of_one_token_are_counted(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    path = f"/v1/tasks/{task}/events?ticks=0"
    opened = [await server.socket(path) for _ in range(3)]
    assert await refused(server, path) == (429, "rate_limited")
    reply = await server.http.get(path, headers={"accept": "text/event-stream"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "5")
    await opened[0].close()
    async with asyncio.timeout(60):
        while True:
            try:
                opened[0] = await server.socket(path)
                break
            except InvalidStatus:
                await asyncio.sleep(0.01)
    for one in opened:
        await one.close()


async def test_whoever_watches_a_task_that_is_deleted_is_told_so(server: Served, hold: Hold) -> None:
    hold.release.set()
    task = await held(server, hold)
    async with server.socket(f"/v1/tasks/{task}/events?until=end&after=0") as socket:
        assert await close_of(socket) == (1000, "until=end")
    async with server.socket(f"/v1/tasks/{task}/events?ticks=0") as socket:
        await until(socket, "live")
        await server.good("DELETE", f"/v1/tasks/{task}")
        assert (await frame(socket))["type"] == "bye"
        assert await close_of(socket) == (4404, "task_deleted")
    assert await refused(server, f"/v1/tasks/{task}/events") == (404, "not_found")


async def test_who_leaves_without_a_word_is_no_trouble(
    server: Served, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    task = await held(server, hold)
    socket = await server.socket(f"/v1/tasks/{task}/events?until=end")
    await until(socket, "live")
    socket.transport.abort()
    hold.release.set()
    async with server.socket(f"/v1/tasks/{task}/events?after=0&until=end") as other:
        assert await close_of(other) == (1000, "until=end")
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


async def test_all_tasks_on_one_socket(server: Served) -> None:
    async with server.socket("/v1/events") as socket:
        cursor = (await until(socket, "live"))[-1]["cursor"]
        task = await server.start({"name": "big", "steps": [{"id": "a", "tool": "test.big", "with": {"n": 1}}]})
        seen = [await frame(socket) for _ in range(5)]
        assert seqs(seen) == [1, 2, 3, 4, 5]
    async with server.socket(f"/v1/events?after={cursor}&types=task.") as socket:
        again = await until(socket, "live")
        assert [one["event"]["type"] for one in again if one["type"] == "event"] == [
            "task.created", "task.started", "task.completed",
        ]  # fmt: skip
        assert {one["event"]["task"] for one in again if one["type"] == "event"} == {task}


async def test_the_engine_says_good_bye_and_why(tmp_path: Path, hold: Hold) -> None:
    hold.release.set()
    async with served(tmp_path, hold.tools()) as server:
        task = await server.start(HOLD)
        socket = await server.socket(f"/v1/tasks/{task}/events?ticks=0")
        await until(socket, "live")
    seen = []
    with suppress(ConnectionClosed):
        while True:
            seen.append(await frame(socket))
    assert seen[-1]["type"] == "bye"
    assert seen[-1]["reason"] == "shutdown"
    assert socket.close_code == 1001


async def test_who_does_not_read_is_let_go_with_the_place_it_has_come_to(tmp_path: Path, hold: Hold) -> None:
    """The reader's window is small and it reads nothing until the server has given up on it."""
    steps = [{"id": f"s{n}", "tool": "test.big", "with": {"n": n}} for n in range(60)]
    settings = {"events.queue_bytes": "64KiB", "limits.output": "1GiB"}
    async with served(tmp_path, hold.tools(), **settings) as server:
        task = await server.start({"name": "big", "steps": [{"id": "h", "tool": "test.hold"}, *steps]})
        narrow = sockets.socket()
        narrow.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        narrow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", int(server.url.rpartition(":")[2])))
        slow = await server.socket(f"/v1/tasks/{task}/events?ticks=0", sock=narrow, max_queue=1)
        quick = await server.socket(f"/v1/tasks/{task}/events?ticks=0&until=end")
        await until(quick, "live")
        hold.release.set()
        fast = seqs(await until(quick, "event"))
        with suppress(ConnectionClosed):
            while True:
                fast += seqs([await frame(quick)])
        assert fast == list(range(fast[0], fast[0] + len(fast)))
        seen: list[int] = []
        with suppress(ConnectionClosed):
            while True:
                seen += seqs([await frame(slow)])
        assert (slow.close_code, slow.close_reason) == (1013, f"slow_consumer seq={seen[-1]}")
        assert seen == fast[: len(seen)]
        assert len(seen) < len(fast)
        rest = await server.socket(f"/v1/tasks/{task}/events?after={seen[-1]}&until=end")
        assert seqs(await until(rest, "live")) == fast[len(seen) :]
        await rest.close()


# --- server-sent events, long poll ---


async def lines_of(server: Served, path: str, **headers: str) -> list[dict[str, str]]:
    """Server-sent events until the server ends it."""
    found: list[dict[str, str]] = [{}]
    async with server.http.stream("GET", path, headers={"accept": "text/event-stream", **headers}) as reply:
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["cache-control"] == "no-store"
        async for line in reply.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                found[-1][name] = value
            elif found[-1]:
                found.append({})
    return [one for one in found if one]


async def test_the_same_frames_as_server_sent_events(server: Served, hold: Hold) -> None:
    task = await held(server, hold)
    hold.release.set()
    path = f"/v1/tasks/{task}/events?until=end&ticks=0"
    told = await lines_of(server, f"{path}&after=0")
    assert [one["event"] for one in told][:2] == ["hello", "event"]
    events = [one for one in told if one["event"] == "event"]
    assert [one["id"] for one in events] == ["1", "2", "3", "4", "5"]
    page = await server.good("GET", f"/v1/tasks/{task}/events?after=0&limit=500")
    assert [json.loads(one["data"])["event"] for one in events] == page["events"]
    again = await lines_of(server, f"{path}&after=0", **{"last-event-id": "3"})
    assert [one["id"] for one in again if one["event"] == "event"] == ["4", "5"]


async def test_silence_is_a_comment_in_server_sent_events(tmp_path: Path, hold: Hold) -> None:
    async with served(tmp_path, hold.tools(), **{"events.heartbeat": "100ms"}) as server:
        path = f"/v1/tasks/{await held(server, hold)}/events?ticks=0"
        async with server.http.stream("GET", path, headers={"accept": "text/event-stream"}) as reply:
            async for line in reply.aiter_lines():
                if line == ": hb":
                    break
        hold.release.set()


async def test_a_refused_stream_is_an_ordinary_reply(server: Served) -> None:
    for accept in ("text/event-stream", "application/json"):
        reply = await server.http.get("/v1/tasks/t_unknown/events", headers={"accept": accept})
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
