"""A project with the pipeline of the worked example, and a client of either revision on the stdio of `everstep mcp`."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"

TOOLS = '''
import os
from everstep import Transient, tool

print("noise on stdout")


def note(what):
    with open("calls.log", "a") as log:
        log.write(what + "\\n")


@tool.pure("fetch_data")
async def fetch_data(source: str) -> dict:
    """Read records"""
    print("noise in a call")
    note("fetch")
    if "mirror" not in source:
        raise Transient("connection refused")
    return {"lines": ["a,1"]}


@tool.pure("transform_data")
async def transform_data(data: dict, format: str = "rows") -> dict:
    """Shape records"""
    note("transform")
    return {"rows": [["a", 1]]}


@tool("store_data")
async def store_data(payload: list) -> dict:
    """Save rows"""
    note("store")
    return {"stored": len(payload)}
'''

PLAN = """
name: data-pipeline
description: fetch, transform and store records
inputs: {source: {type: string, description: Where the records are}}
steps:
  - {id: fetch, bind: raw_data, tool: fetch_data, with: {source: "${inputs.source}"}, retry: 0, retryable: true,
     guidance: "If ${inputs.source} stays down, use the mirror."}
  - {id: transform, bind: transformed, tool: transform_data, with: {data: "${raw_data}", format: rows}}
  - {id: store, tool: store_data, with: {payload: "${transformed.rows}"}}
"""

PLAIN_MESSAGES = [
    ("user", 'I want to fetch, transform and store records.\nParameters:\n  - source: "http://a.test/x"'),
    (
        "assistant",
        "Here's my plan:\n1. fetch_data - Read records\n2. transform_data - Shape records\n3. store_data - Save rows\n",
    ),
    ("assistant", "If http://a.test/x stays down, use the mirror."),
    ("assistant", 'Calling tool \'fetch_data\' with parameters:\n{\n  "source": "http://a.test/x"\n}'),
    ("user", "Error executing tool: connection refused"),
]
HANDOFF = """Step 'fetch' failed: connection refused. This step is retryable.

To continue the workflow, make these tool calls:

1. Call fetch_data with {"source":"http://a.test/x"}
   Note: If http://a.test/x stays down, use the mirror.
2. Call transform_data with {"data":"<output from raw_data>","format":"rows"}
3. Call store_data with {"payload":"<field 'rows' from transformed>"}
"""
REASON = {
    "type": "toolError",
    "failedStep": "fetch",
    "error": "connection refused",
    "retryable": True,
    "suggestedTool": "fetch_data",
}


def make_project(folder: Path, continue_by: str = "client") -> Path:
    """The pipeline, published twice: as a plain prompt, and with tasks."""
    (folder / "pipeline_tools.py").write_text(TOOLS)
    (folder / "data-pipeline.plan.yaml").write_text(PLAN)
    (folder / "plain-pipeline.plan.yaml").write_text(PLAN.replace("data-pipeline", "plain-pipeline"))
    (folder / "everstep.toml").write_text(
        'tools = ["pipeline_tools"]\n'
        f'[mcp.workflows.data-pipeline]\ntask_support = true\ncontinue_by = "{continue_by}"\n'
        "[mcp.workflows.plain-pipeline]\n"
    )
    return folder


def environment() -> dict[str, str]:
    """The one of this process, where this source is found."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


class Wire:
    """JSON-RPC by hand: exactly what is sent, exactly what comes."""

    def __init__(self, process: asyncio.subprocess.Process, era: str) -> None:
        self.process = process
        self.era = era
        self.heard: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        """Replies to what the server asks, in order."""
        self._next = 0

    async def ask(self, method: str, params: dict[str, Any] | None = None, *, tasks: bool = True) -> dict[str, Any]:
        """The whole reply."""
        return await self.end(await self.begin(method, params, tasks=tasks))

    async def begin(self, method: str, params: dict[str, Any] | None = None, *, tasks: bool = True) -> int:
        """Ask; the number of the request."""
        self._next += 1
        sent = dict(params or {})
        if self.era == MODERN:
            capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
            if tasks:
                capabilities["extensions"] = {TASKS: {}}
            sent["_meta"] = {
                **sent.get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            }
        await self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": sent})
        return self._next

    async def end(self, number: int) -> dict[str, Any]:
        """The reply to a request; what else comes meanwhile is kept."""
        early = next((one for one in self.heard if one.get("id") == number and "method" not in one), None)
        while early is None:
            said = await self._read()
            if said.get("id") == number and "method" not in said:
                return said
            if "method" in said and "id" in said:
                await self._send({"jsonrpc": "2.0", "id": said["id"], "result": self.answers.pop(0)})
            self.heard.append(said)
        return early

    async def hear(self, method: str) -> dict[str, Any]:
        """The first notification of this kind, which comes if it has not come yet."""
        while True:
            found = next((one for one in self.heard if one.get("method") == method), None)
            if found is not None:
                return found
            self.heard.append(await self._read())

    async def good(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result."""
        reply = await self.ask(method, params)
        assert "result" in reply, reply
        found: dict[str, Any] = reply["result"]
        return found

    async def call(self, tool: str, arguments: dict[str, Any], task: str | None = None) -> dict[str, Any]:
        """A tool call, for a task or not."""
        meta = {} if task is None else {"_meta": {"_task_id": task}}
        return await self.good("tools/call", {"name": tool, "arguments": arguments, **meta})

    async def hello(self) -> dict[str, Any]:
        """The handshake of the older revision."""
        client = {
            "protocolVersion": LEGACY,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "wire", "version": "1"},
        }
        said = await self.good("initialize", client)
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said

    async def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            line = await self.process.stdout.readline()
        assert line, "the server has gone"
        found: dict[str, Any] = json.loads(line)  # nothing but the protocol is on stdout
        return found

    async def leave(self) -> int:
        """Close our end; the server stops in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(120):
            return await self.process.wait()


@asynccontextmanager
async def wire(folder: Path, era: str, *words: str) -> AsyncIterator[Wire]:
    """`everstep mcp` in a folder, and a client on its stdio."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "everstep",
        "mcp",
        *words,
        cwd=folder,
        env=environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=16 * 1024 * 1024,
    )
    client = Wire(process, era)
    try:
        if era == LEGACY:
            await client.hello()
        yield client
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
