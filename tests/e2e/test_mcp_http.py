"""MCP over HTTP, behind the gate of `everstep serve`: the same story, and whose it is."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.mcp_project import HANDOFF, MODERN, TASKS, environment, make_project


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
async def served(folder: Path) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everstep", "--json", "serve", "--port", "0"),
        cwd=folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = b""
            while not line.startswith(b"{"):  # tools may print while they are loaded
                line = await process.stdout.readline()
            url = json.loads(line)["url"]
        yield url
    finally:
        process.terminate()
        await process.wait()


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


@pytest.mark.req("INTG-04", "CONT-03")
async def test_the_story_over_http_and_whose_it_is(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    async with served(folder) as url:
        ana = Visitor(url, (folder / ".everstep" / "token").read_text().strip())
        begun = await ana.good("prompts/get", name="data-pipeline", arguments={"source": "http://a.test/x"})
        assert begun["messages"][-1]["content"]["text"] == HANDOFF
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
