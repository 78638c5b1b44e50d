"""The client side of MCP: against a server made with the SDK, and against one that does everything wrong."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from everstep.adapters.isolation.child import Bounds, Program
from everstep.adapters.net.client import Client
from everstep.adapters.net.guard import Guard
from everstep.adapters.remote import server as life
from everstep.adapters.remote.over_http import HttpLink
from everstep.adapters.remote.server import Refused, RemoteServer
from everstep.adapters.remote.stdio import StdioLink
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolError

HERE = Path(__file__).parent


def program(place: Path, script: str) -> Program:
    return Program(
        argv=(sys.executable, str(HERE / script)),
        cwd=str(place),
        bounds=Bounds(address_space=False, cpu_s=1e6),
        reads=tuple({sys.prefix, sys.base_prefix, str(HERE)}),
        writes=(str(place),),
    )


def stdio(place: Path, script: str = "hostile_server.py") -> RemoteServer:
    return RemoteServer(name="mcp.other", link=lambda: StdioLink(program(place, script), "mcp.other"), start_s=60)


@pytest.fixture
async def hostile(tmp_path: Path) -> AsyncIterator[RemoteServer]:
    server = stdio(tmp_path)
    yield server
    await server.close()


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Whoever knocks before it answers waits: the socket listens already."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        command = [sys.executable, str(HERE / "good_server.py"), str(door.fileno())]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, pass_fds=[door.fileno()])
        yield f"http://127.0.0.1:{door.getsockname()[1]}/mcp"
    process.kill()
    process.wait()


def wrecks(how: str) -> JsonObject:
    return {"how": how}


def words(result: dict[str, Any]) -> str:
    (content,) = result["content"]
    return str(content["text"])


async def ordinary(server: RemoteServer) -> None:
    """What every server can do."""
    assert [tool["name"] for tool in await server.listed("tools")] == ["add", "fail"]
    assert words(await server.call("add", {"a": 2, "b": 3})) == "5"
    assert (await server.call("fail", {}))["isError"] is True
    assert await server.ping() < 60
    read = await server.request("resources/read", {"uri": "docs://readme"})
    assert "read me" in str(read["contents"])
    with pytest.raises(Refused, match="-3260"):
        await server.request("no/such", {})
    several = [server.call("add", {"a": n, "b": 0}) for n in range(20)]
    assert [words(one) for one in await asyncio.gather(*several)] == [str(n) for n in range(20)]
    assert server.starts == 1


async def test_one_of_the_sdk_by_stdio(tmp_path: Path) -> None:
    server = stdio(tmp_path, "good_server.py")
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    await ordinary(server)
    assert server.greeting["serverInfo"]["name"] == "good"  # type: ignore[index,call-overload]
    held = server.containment
    assert held is not None
    assert held["network"] == "none"
    await server.close()
    assert {one.pid for one in psutil.Process().children(recursive=True)} <= before


async def test_one_of_the_sdk_over_http(elsewhere: str) -> None:
    client = Client(guard=Guard())
    server = RemoteServer(name="mcp.other", link=lambda: HttpLink(client, elsewhere), start_s=60)
    await ordinary(server)
    await server.close()
    assert words(await server.call("add", {"a": 1, "b": 1})) == "2"  # another session, by itself
    await server.close()
    await client.close()


async def test_nobody_there() -> None:
    client = Client(guard=Guard())
    server = RemoteServer(name="mcp.other", link=lambda: HttpLink(client, "http://127.0.0.1:9/mcp"))
    with pytest.raises(ToolError) as caught:
        await server.ping()
    assert (caught.value.code, caught.value.effect_state) == ("net_refused", "none")


async def test_pages_progress_and_questions(hostile: RemoteServer) -> None:
    assert [tool["name"] for tool in await hostile.listed("tools")] == ["echo", "wreck", "drop"]
    seen: list[tuple[float, float | None]] = []
    await hostile.call("echo", {"text": "hi"}, progress=lambda done, total, _: seen.append((done, total)))
    assert seen == [(1.0, 2.0)]
    assert words(await hostile.call("wreck", wrecks("asks"))) == "-32601"  # no model is lent to a server


async def test_a_call_that_was_meant_for_one_start_is_not_made_at_the_next(hostile: RemoteServer) -> None:
    await hostile.ping()
    seen = hostile.starts
    with pytest.raises(ToolError):
        await hostile.call("wreck", wrecks("die"), start=seen)
    hostile._not_before = 0.0
    with pytest.raises(ToolError) as caught:
        await hostile.call("echo", {"text": "x"}, start=seen)
    assert (caught.value.code, caught.value.effect_state, hostile.starts) == ("mcp_down", "none", seen + 1)


@pytest.mark.parametrize(
    ("how", "code", "effect"),
    [
        ("die", "mcp_broken", "unknown"),
        ("huge", "mcp_frame", "unknown"),
        ("refuse", "mcp_arguments", "none"),
        ("nothing", "mcp_error", "unknown"),
    ],
)
async def test_what_goes_wrong_is_told_apart(hostile: RemoteServer, how: str, code: str, effect: str) -> None:
    with pytest.raises(ToolError) as caught:
        await hostile.call("wreck", wrecks(how))
    assert (caught.value.code, caught.value.effect_state) == (code, effect)


async def test_garbage_is_passed_over(hostile: RemoteServer) -> None:
    assert words(await hostile.call("wreck", wrecks("garbage"))) == "after garbage"


async def test_silence_ends_the_wait_not_the_server(hostile: RemoteServer) -> None:
    await hostile.ping()
    with pytest.raises(ToolError, match=r"did not answer tools/call") as caught:
        await hostile.call("wreck", wrecks("silent"), timeout_s=0.2)
    assert (caught.value.code, caught.value.effect_state) == ("mcp_timeout", "unknown")
    assert words(await hostile.call("echo", {"text": "still here"})) == "still here"
    assert hostile.starts == 1


async def test_a_killed_one_comes_back(hostile: RemoteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who wait are told, who asks at once is put off, then it is started again."""
    monkeypatch.setattr(life, "RESTART_S", (60.0, 60.0))
    where = (await hostile.call("echo", {"text": "x"}))["structuredContent"]
    assert isinstance(where, dict)
    waiting = asyncio.ensure_future(hostile.call("wreck", wrecks("silent")))
    await hostile.ping()
    for process in psutil.Process().children(recursive=True):
        if "hostile_server.py" in " ".join(process.cmdline()):
            os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(ToolError) as caught:
        await waiting
    assert (caught.value.code, caught.value.effect_state) == ("mcp_broken", "unknown")
    with pytest.raises(ToolError) as caught:
        await hostile.ping()
    assert (caught.value.code, caught.value.effect_state) == ("mcp_down", "none")

    hostile._not_before = 0.0  # its rest is over
    await hostile.ping()
    assert hostile.starts == 2


async def test_a_cancelled_call_tells_the_server(hostile: RemoteServer) -> None:
    await hostile.ping()
    calling = asyncio.ensure_future(hostile.call("wreck", wrecks("silent")))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await hostile.ping() < 60
    assert hostile._waiting == {}


async def test_one_that_cannot_start(tmp_path: Path) -> None:
    links: list[Callable[[], StdioLink]] = [
        lambda: StdioLink(Program(argv=("/no/such/program",), cwd=str(tmp_path)), "mcp.other")
    ]
    server = RemoteServer(name="mcp.other", link=links[0])
    with pytest.raises(ToolError, match="exit code 127") as caught:
        await server.ping()
    assert caught.value.effect_state == "none"
