"""Clients that others wrote, against `everstep mcp` on stdio: they begin the worked example and go on with it. And a
server that others wrote, whose tools are steps of a plan.

    python tests/mcp_conformance/peers.py

The MCP Inspector in both eras and the TypeScript client from npm, the `mcp` 1.x client and FastMCP's in environments of
their own; all in `.conformance`.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.e2e.mcp_project import HANDOFF, make_project  # noqa: E402 -- a program, not a package
from tests.mcp_conformance.run import CACHE, NODE, environment, npm_install, program  # noqa: E402

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
EVERYTHING_PLAN = """
name: everything
steps:
  - {id: say, tool: mcp.everything.echo, with: {message: hello}, retry: 0}
  - {id: sum, tool: mcp.everything.get-sum, with: {a: 2, b: 40}, retry: 0}
outputs: {said: "${say.text}", sum: "${sum.text}"}
"""
TYPESCRIPT = ("@modelcontextprotocol/client@2.4.0", "@modelcontextprotocol/ext-tasks@0.2.2")
TYPESCRIPT_STORY = """
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const [folder, words] = [process.argv[2], JSON.parse(process.argv[3])];
const client = new Client({ name: "peer", version: "1" }, { capabilities: {} });
const [command, ...args] = words;
await client.connect(new StdioClientTransport({ command, args, cwd: folder, env: process.env, stderr: "ignore" }));
const begun = await client.getPrompt({ name: "data-pipeline", arguments: { source: "http://a.test/x" } });
const _meta = { _task_id: begun._meta.task_id };
const made = await client.callTool({ name: "fetch_data", arguments: { source: "mirror" }, _meta });
const session = createTaskSessionFromClient(client, { endpointId: "everstep" });
const execution = await session.callTool("fetch_data", { source: "mirror" });
const result = resultFromTaskOutcome((await execution.settle()).outcome);
await session.close();
await client.close();
console.log(JSON.stringify({
  said: begun.messages.at(-1).content.text, made: made.structuredContent, as_task: result.structuredContent,
}));
"""
FASTMCP = "fastmcp>=4.1,<5"
FASTMCP_STORY = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

async def main():
    folder, command, env = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    server = StdioTransport(command=command[0], args=command[1:], cwd=folder, env=env, keep_alive=False)
    async with Client(server) as client:
        begun = await client.get_prompt("data-pipeline", {"source": "http://a.test/x"})
        task = begun.meta["task_id"]
        made = await client.call_tool("fetch_data", {"source": "mirror"}, meta={"_task_id": task})
        listed = await client.call_tool("list_tasks", {})
        count = len(listed.structured_content["tasks"])
        said = begun.messages[-1].content.text
        print(json.dumps({"said": said, "made": made.structured_content, "listed": count}))

asyncio.run(main())
"""
OLD_CLIENT = "mcp>=1.30,<2"
SERVER = [sys.executable, "-m", "everstep", "mcp"]
OLD_STORY = """
import asyncio, json, sys, warnings
warnings.simplefilter("ignore")
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

async def main():
    folder, command, env = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=folder, env=env)
    async with stdio_client(server, errlog=open("/dev/null", "w")) as (r, w), ClientSession(r, w) as s:
        await s.initialize()
        begun = await s.get_prompt("data-pipeline", {"source": "http://a.test/x"})
        tasks = s.experimental
        made = await tasks.call_tool_as_task("fetch_data", {"source": "mirror"}, ttl=60000)
        await tasks.get_task(made.task.taskId)
        result = await tasks.get_task_result(made.task.taskId, types.CallToolResult)
        listed = await tasks.list_tasks()
        ended = await tasks.cancel_task(begun.meta["task_id"])
        print(json.dumps({"result": result.structuredContent, "listed": len(listed.tasks), "ended": ended.status}))

asyncio.run(main())
"""


def inspector(folder: Path, era: str, *words: str) -> Any:
    """What the Inspector prints."""
    command = [*program("mcp-inspector"), "--cli", "--protocol-era", era, *words, "--"]
    done = subprocess.run(
        [*command, *SERVER], cwd=folder, env=environment(), capture_output=True, timeout=120, check=False
    )
    return json.loads(done.stdout)


def inspected(folder: Path, era: str) -> None:
    """The Inspector begins in one era, and goes on in the other."""
    words = ("--method", "prompts/get", "--prompt-name", "data-pipeline", "--prompt-args", "source=http://a.test/x")
    begun = inspector(folder, era, *words)
    assert begun["messages"][-1]["content"]["text"] == HANDOFF
    other = {"modern": "legacy", "legacy": "modern"}[era]
    call = ("--method", "tools/call", "--tool-name", "fetch_data", "--tool-arg", "source=mirror")
    made = inspector(folder, other, *call, "--tool-metadata", f"_task_id={begun['_meta']['task_id']}")
    assert made["structuredContent"] == {"lines": ["a,1"]}
    assert made["_meta"]["steps"][0] == {"name": "fetch", "status": "completed"}


def told_by(home: Path, package: str, story: str, folder: Path) -> Any:
    """What a client of another environment of Python tells at the end of its story."""
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True, capture_output=True)
    told = [str(folder), json.dumps(SERVER), json.dumps(environment())]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-c", story, *told], env=own, capture_output=True, timeout=120, check=False)
    assert done.stdout, done.stderr.decode()[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def old_client(folder: Path) -> None:
    """Tasks of 2025-11-25 with the client of that time."""
    said = told_by(CACHE / "mcp1", OLD_CLIENT, OLD_STORY, folder)
    assert said == {"result": {"lines": ["a,1"]}, "listed": 2, "ended": "cancelled"}, said


def fastmcp(folder: Path) -> None:
    """The client of FastMCP begins and goes on."""
    said = told_by(CACHE / "fastmcp4", FASTMCP, FASTMCP_STORY, folder)
    assert said == {"said": HANDOFF, "made": {"lines": ["a,1"]}, "listed": 1}, said


def typescript(folder: Path) -> None:
    """The client of the TypeScript SDK begins and goes on, and makes a call as a task with the package for Tasks."""
    story = CACHE / "story.mjs"
    story.write_text(TYPESCRIPT_STORY)
    words = [NODE, str(story), str(folder), json.dumps(SERVER)]
    done = subprocess.run(words, cwd=CACHE, env=environment(), capture_output=True, timeout=120, check=False)
    assert done.stdout, done.stderr.decode()[-2000:]
    lines = {"lines": ["a,1"]}
    said = json.loads(done.stdout)
    assert said == {"said": HANDOFF, "made": lines, "as_task": lines}, said


def everything(folder: Path) -> None:
    """The reference server behind its walls; a plan calls two of its tools."""
    server = CACHE / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    command = json.dumps([NODE, str(server), "stdio"])
    with (folder / "everstep.toml").open("a") as config:
        config.write(f"\n[mcp.servers.everything]\ncommand = {command}\ntools = ['echo', 'get-sum']\n")
        config.write(f"reads = [{json.dumps(str(CACHE))}]\n")
        config.write("effects = { echo = 'pure', get-sum = 'pure' }\n")
    (folder / "everything.yaml").write_text(EVERYTHING_PLAN)
    words = [sys.executable, "-m", "everstep", "run", "everything.yaml", "--json"]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, timeout=120, check=False)
    told = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode() + told
    assert "Echo: hello" in told, told
    assert "42" in told, told


def main() -> int:
    CACHE.mkdir(exist_ok=True)
    for package in (INSPECTOR, EVERYTHING, *TYPESCRIPT):
        if not (CACHE / "node_modules" / package.rpartition("@")[0]).is_dir():
            npm_install(package)
    stories: dict[str, Callable[[Path], None]] = {
        "Inspector, modern then legacy": lambda folder: inspected(folder, "modern"),
        "Inspector, legacy then modern": lambda folder: inspected(folder, "legacy"),
        "mcp 1.x": old_client,
        "TypeScript client, with ext-tasks": typescript,
        "FastMCP": fastmcp,
        "server-everything": everything,
    }
    failed = 0
    for name, story in stories.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                story(make_project(Path(folder)))
            except (AssertionError, ValueError, KeyError) as error:
                failed += 1
                print(f"{name}: {error!r}", flush=True)
            else:
                print(f"{name}: fine", flush=True)
    print(f"{len(stories) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
