"""MCP over HTTP, behind the gate of `everstep serve`: the same story, and whose it is."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from websockets.asyncio.client import connect

from tests.e2e.mcp_project import HANDOFF, LEGACY, MODERN, REASON, TASKS, environment, make_project


class Visitor:
    """A client of the newer revision with a token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    async def send(self, method: str, params: dict[str, Any], **headers: str) -> httpx2.Response:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "visitor", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "extensions": {TASKS: {}}},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method}
        named = params.get("name") or params.get("taskId")
        sent = {
            "authorization": f"Bearer {self.token}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            **({"mcp-name": named} if named else {}),
            **headers,
        }
        whole = {**body, "params": {**params, "_meta": {**params.get("_meta", {}), **meta}}}
        async with httpx2.AsyncClient(timeout=30) as http:
            return await http.post(f"{self.url}/mcp", json=whole, headers=sent)

    async def good(self, method: str, **params: Any) -> dict[str, Any]:
        response = await self.send(method, params)
        assert response.status_code == 200, response.text
        text = response.text
        if not text.startswith("{"):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        found: dict[str, Any] = json.loads(text)["result"]
        return found


@asynccontextmanager
async def served(folder: Path, *words: str, killed: bool = False) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everstep", *(words or ("--json", "serve"))),
        cwd=folder,
        env={**environment(), "EVERSTEP_SERVE__PORT": "0"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            url = json.loads(await process.stdout.readline())["url"]  # what tools print does not come here
        yield url
    finally:
        if killed:
            process.kill()
        else:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def official(folder: Path, url: str) -> AsyncIterator[ClientSession]:
    """The SDK's own client, in the older revision, with the project's token."""
    token = (folder / ".everstep" / "token").read_text().strip()
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=30) as http,
        streamable_http_client(url, http_client=http, terminate_on_close=False) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        assert (await client.initialize()).protocol_version == LEGACY
        yield client


@pytest.mark.req("FNDX-01", "FNDX-02", "EXEC-01", "EXEC-05", "HAND-03", "HAND-03.a", "CONT-01", "CONT-02", "INTG-04")
async def test_the_official_client_over_http_and_a_server_that_is_killed(tmp_path: Path) -> None:
    """`everstep mcp --http`, killed after the hand-over, after every call and after the end: others go on with it."""
    folder = make_project(tmp_path)
    async with served(folder, "mcp", "--http", killed=True) as url, official(folder, url) as client:
        begun = await client.get_prompt("data-pipeline", {"source": "http://a.test/x"})
        assert [one.content.text for one in begun.messages][-1] == HANDOFF  # type: ignore[union-attr]
        assert begun.meta is not None
        meta = cast("Any", {"_task_id": begun.meta["task_id"]})
        whole = await client.get_prompt("data-pipeline", {"source": "mirror"})
        assert whole.meta is not None
        assert (whole.meta["task_status"], begun.meta["pause_reason"]) == ("completed", REASON)
    async with served(folder, "mcp", "--http", killed=True) as url, official(folder, url) as client:
        made = await client.call_tool("fetch_data", {"source": "mirror"}, meta=meta)
        assert made.structured_content == {"lines": ["a,1"]}
    async with served(folder, "mcp", "--http", killed=True) as url, official(folder, url) as client:
        await client.call_tool("transform_data", {"data": "<output from raw_data>", "format": "rows"}, meta=meta)
    async with served(folder, "mcp", "--http", killed=True) as url, official(folder, url) as client:
        last = await client.call_tool("store_data", {"payload": [["a", 1]]}, meta=meta)
        assert last.meta is not None
        assert {one["status"] for one in last.meta["steps"]} == {"completed"}
    async with served(folder, "mcp", "--http", killed=True) as url, official(folder, url) as client:
        extra = await client.call_tool("fetch_data", {"source": "mirror"}, meta=meta)
        assert not extra.is_error
        ended = await client.call_tool("complete_task", {"task": begun.meta["task_id"], "result": {"stored": 1}})
        assert not ended.is_error
    async with served(folder, "mcp", "--http") as url, official(folder, url) as client:
        shown = await client.call_tool("get_task", {"task": begun.meta["task_id"]})
        assert shown.structured_content is not None
        assert (shown.structured_content["status"], shown.structured_content["outputs"]) == ("completed", {"stored": 1})
        late = await client.call_tool("fetch_data", {"source": "mirror"}, meta=meta)
        assert late.is_error
    called = (tmp_path / "calls.log").read_text().split()
    assert called == ["fetch", "fetch", "transform", "store", "fetch", "transform", "store", "fetch"]


async def token(folder: Path, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everstep", "--json", "token", "new", *words),
        cwd=folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    return str(json.loads(out)["value"])


async def reasons_at_every_door(folder: Path, url: str, token: str) -> set[str]:
    """Why the only task stands still, letter by letter: journal, HTTP, WebSocket, command line."""
    bearer = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=bearer, timeout=30, base_url=url) as http:
        (pause,) = (await http.get("/v1/inbox")).json()["items"]
        events = (await http.get(f"/v1/tasks/{pause['task']}/events?after=0")).json()["events"]
    place = f"ws{url.removeprefix('http')}/v1/tasks/{pause['task']}/events?after=0"
    async with asyncio.timeout(30), connect(place, additional_headers=bearer, proxy=None) as socket:
        while (told := json.loads(await socket.recv()).get("event") or {}).get("type") != "pause.opened":
            pass
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everstep", "--json", "inbox"),
        cwd=folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    opened = next(one for one in events if one["type"] == "pause.opened")
    (shown,) = json.loads(out)["items"]
    found = (pause["reason"], opened["data"]["reason"], told["data"]["reason"], shown["reason"])
    return {json.dumps(one) for one in found}


@pytest.mark.req("INTG-04", "CONT-03", "EXEC-02.f")
async def test_the_story_over_http_and_whose_it_is(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    async with served(folder) as url:
        ana = Visitor(url, (folder / ".everstep" / "token").read_text().strip())
        begun = await ana.good("prompts/get", name="data-pipeline", arguments={"source": "http://a.test/x"})
        assert begun["messages"][-1]["content"]["text"] == HANDOFF
        assert await reasons_at_every_door(folder, url, ana.token) == {json.dumps(begun["_meta"]["pause_reason"])}
        task = begun["_meta"]["task_id"]
        meta = {"_task_id": task}
        made = await ana.good("tools/call", name="fetch_data", arguments={"source": "mirror"}, _meta=meta)
        assert made["structuredContent"] == {"lines": ["a,1"]}

        eve = Visitor(url, await token(folder, "eve", "--owner", "eve"))
        foreign = await eve.send("tasks/get", {"taskId": task})
        unknown = await eve.send("tasks/get", {"taskId": "mt_" + "x" * 32})
        assert foreign.json()["error"] == unknown.json()["error"]
        assert foreign.status_code == unknown.status_code
        stolen = await eve.send("tools/call", {"name": "store_data", "arguments": {"payload": []}, "_meta": meta})
        assert stolen.json()["error"]["code"] == -32602

        nobody = await Visitor(url, "es_nothing").send("tasks/get", {"taskId": task})
        assert nobody.status_code == 401
        assert "www-authenticate" in nobody.headers
        assert (await ana.send("tasks/get", {"taskId": task}, origin="http://evil.test")).status_code == 403
        assert (await ana.send("tasks/get", {"taskId": task}, host="evil.test")).status_code == 421
        mismatch = await ana.send("tasks/get", {"taskId": task}, **{"mcp-name": "mt_other"})
        assert (mismatch.status_code, mismatch.json()["error"]["code"]) == (400, -32020)

        looks = Visitor(url, await token(folder, "looks", "--scopes", "read"))
        refused = await looks.send("prompts/get", {"name": "data-pipeline", "arguments": {}})
        assert refused.json()["error"]["data"]["code"] == "forbidden"
        assert (await looks.good("tasks/get", taskId=task))["status"] == "working"

        await ana.good("tasks/cancel", taskId=task, result={"stored": 0})
        assert (await ana.good("tasks/get", taskId=task))["status"] == "completed"


async def test_a_call_as_a_task_is_made_for_who_asks_with_an_object_and_for_nobody_else(tmp_path: Path) -> None:
    """A notification of that name made a task that nobody was told of; arguments of another type ended with a stack."""
    folder = make_project(tmp_path)
    async with served(folder, "mcp", "--http") as url, httpx2.AsyncClient(base_url=url, timeout=30) as http:
        http.headers["authorization"] = f"Bearer {(folder / '.everstep' / 'token').read_text().strip()}"
        http.headers["accept"] = "application/json, text/event-stream"

        async def say(method: str, params: dict[str, Any], **more: Any) -> httpx2.Response:
            return await http.post("/mcp", json={"jsonrpc": "2.0", "method": method, "params": params, **more})

        who = {"protocolVersion": LEGACY, "capabilities": {"tasks": {}}, "clientInfo": {"name": "old", "version": "1"}}
        opened = await say("initialize", who, id=0)
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        call = {"name": "fetch_data", "arguments": {"source": "mirror"}, "task": {}}
        await say("notifications/initialized", {})
        assert (await say("tools/call", call)).status_code == 202
        assert '"code":-32602' in (await say("tools/call", {**call, "arguments": "source"}, id=1)).text
        assert '"tasks":[]' in (await say("tasks/list", {}, id=2)).text
        assert '"taskId"' in (await say("tools/call", call, id=3)).text
        assert '"taskId"' in (await say("tasks/list", {}, id=4)).text
