"""`everstep mcp proxy`: the same server, with a journal before it; driven by the official Python client."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.mcp_project import MODERN, environment, wire
from tests.e2e.processes import ROOT

SERVER = [sys.executable, str(Path(__file__).parent / "proxied_server.py")]
BEHIND = ["proxy", "--name", "little", "--", *SERVER]
PROXY = [sys.executable, "-m", "everstep", "mcp", *BEHIND]
PATIENCE_S = 60


def calls(folder: Path) -> list[str]:
    log = folder / "calls.log"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def said(folder: Path, *words: str) -> str:
    """What a command prints, which must succeed."""
    command = [sys.executable, "-m", "everstep", *words]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True).stdout


@asynccontextmanager
async def client(folder: Path, *, proxied: bool = True, behind: tuple[str, ...] = ()) -> AsyncIterator[Any]:
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = [*PROXY[:-3], *behind] if behind else [*(PROXY if proxied else SERVER), str(folder)]
    server = StdioServerParameters(command=words[0], args=words[1:], cwd=folder, env=environment())
    with (folder / "stderr").open("a") as log:
        async with stdio_client(server, errlog=log) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            yield session


async def seen(session: Any) -> dict[str, Any]:
    """Everything that a client can see of a server."""
    plain = {"exclude_none": True, "by_alias": True, "mode": "json"}
    return {
        "tools": [one.model_dump(**plain) for one in (await session.list_tools()).tools],
        "prompts": [one.model_dump(**plain) for one in (await session.list_prompts()).prompts],
        "prompt": (await session.get_prompt("hello", {"who": "Ana"})).model_dump(**plain)["messages"],
        "resources": [one.model_dump(**plain) for one in (await session.list_resources()).resources],
        "read": (await session.read_resource("note://one")).model_dump(**plain)["contents"],
        "add": (await session.call_tool("add", {"n": 1})).model_dump(**plain)["structuredContent"],
        "text": (await session.call_tool("add", {"n": 1})).model_dump(**plain)["content"],
        "fail": (await session.call_tool("fail", {})).model_dump(**plain),
    }


@pytest.mark.req("X.5")
async def test_the_same_tools_prompts_resources_and_results(tmp_path: Path) -> None:
    async with client(tmp_path, proxied=False) as direct:
        without = await seen(direct)
    async with client(tmp_path) as behind:
        beside = await seen(behind)
    assert beside.pop("fail")["content"] == without.pop("fail")["content"]
    assert beside == without
    assert calls(tmp_path) == ["add", "add", "fail"] * 2


@pytest.mark.parametrize(
    ("more", "tools"), [("", 0), (f"command = {json.dumps(SERVER)}\ntools = ['add']\n", 1)], ids=["alone", "added too"]
)
async def test_what_the_settings_say_of_a_proxied_server_holds(tmp_path: Path, more: str, tools: int) -> None:
    """Its effects, in a section that other commands live with, also where plans call the same server."""
    (tmp_path / "everstep.toml").write_text(f"[mcp.servers.little]\n{more}effects = {{ add = 'pure' }}\n")
    async with client(tmp_path) as session:
        assert (await session.call_tool("add", {"n": 1})).is_error is False
    assert said(tmp_path, "tools").count("mcp.little.") == tools
    assert '"effect":"pure"' in said(tmp_path, "--store", ".everstep/proxy/little.db", "show", "@last", "--events")


@pytest.mark.req("X.5")
async def test_a_server_elsewhere_is_the_same(tmp_path: Path) -> None:
    """`--url`: the proxy on stdio, the server behind it on HTTP."""
    async with client(tmp_path, proxied=False) as direct:
        without = await seen(direct)
    server = await asyncio.create_subprocess_exec(*SERVER, str(tmp_path), "--http")
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (tmp_path / "server.url").exists():  # noqa: ASYNC110 -- written by another process
                await asyncio.sleep(0.02)
        url = (tmp_path / "server.url").read_text()
        async with client(tmp_path, behind=("--url", url)) as session:
            beside = await seen(session)
        assert beside.pop("fail")["content"] == without.pop("fail")["content"]
        assert beside == without
    finally:
        server.kill()
        await server.wait()


def journal(folder: Path) -> list[Any]:
    store = [sys.executable, "-m", "everstep", "--store", str(folder / ".everstep/proxy/little.db")]
    done = subprocess.run(
        [*store, "ls", "--json"], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout)["items"])


@pytest.mark.req("X.5")
async def test_every_call_is_a_task_and_a_key_makes_it_once(tmp_path: Path) -> None:
    async with client(tmp_path) as session, asyncio.timeout(PATIENCE_S):
        key = {"everstep/idempotency_key": "order-1"}
        for _ in range(2):
            result = await session.call_tool("add", {"n": 4}, meta=key)
            assert result.structured_content == {"n": 5}
        asked = await session.call_tool("drop", {})
        assert asked.is_error
        assert "answer" in asked.content[0].text
        listed = await session.call_tool("list_tasks", {})
        assert len(listed.structured_content["tasks"]) == 2
    assert calls(tmp_path) == ["add"]
    assert {task["status"] for task in journal(tmp_path)} == {"completed", "paused"}


@pytest.mark.req("X.5")
async def test_a_definition_that_changed_is_withheld(tmp_path: Path) -> None:
    async with client(tmp_path) as session:
        assert len((await session.list_tools()).tools) == 5
    (tmp_path / "changed").touch()
    async with client(tmp_path) as session:
        names = [tool.name for tool in (await session.list_tools()).tools]
    assert names == ["buy", "slow", "fail", "drop"]
    assert "withheld" in (tmp_path / "stderr").read_text()


@pytest.mark.req("X.5")
async def test_a_slow_call_is_a_task_for_whoever_can_follow_one(tmp_path: Path) -> None:
    async with wire(tmp_path, MODERN, *BEHIND, str(tmp_path)) as line, asyncio.timeout(PATIENCE_S):
        made = await line.call("slow", {"n": 1})
        assert made["resultType"] == "task"
        (tmp_path / "go").touch()
        while (task := await line.good("tasks/get", {"taskId": made["taskId"]}))["status"] == "working":  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # as a client polls
        assert task["status"] == "completed"
        assert task["result"]["structuredContent"] == {"n": 2}
    assert calls(tmp_path) == ["slow"]


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.e2e.test_mcp_proxy import client

async def main():
    async with client(Path(sys.argv[1])) as session:
        await session.call_tool("slow", {"n": 41}, meta={"everstep/idempotency_key": "the-call"})

asyncio.run(main())
"""


@pytest.mark.req("X.5")
async def test_a_client_killed_in_a_call_finds_the_result_when_it_comes_back(tmp_path: Path) -> None:
    """The client dies without a word; the call it had made comes to its end, once, and whoever reopens it sees it."""
    words = (sys.executable, "-c", KILLED, str(tmp_path))
    first = await asyncio.create_subprocess_exec(*words, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
    async with asyncio.timeout(PATIENCE_S):
        while calls(tmp_path) != ["slow"]:  # noqa: ASYNC110 -- written by another process
            await asyncio.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    await first.wait()
    (tmp_path / "go").touch()
    async with client(tmp_path) as session, asyncio.timeout(PATIENCE_S):
        result = await session.call_tool("slow", {"n": 41}, meta={"everstep/idempotency_key": "the-call"})
        assert result.structured_content == {"n": 42}
    assert calls(tmp_path) == ["slow"]
