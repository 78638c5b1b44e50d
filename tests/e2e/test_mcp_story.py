"""The worked example over stdio: create, execute, hand over, go on, complete; with real clients of both revisions."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tests.e2e.mcp_project import (
    HANDOFF,
    LEGACY,
    MODERN,
    PLAIN_MESSAGES,
    REASON,
    Wire,
    environment,
    make_project,
    wire,
)

BOTH = pytest.mark.parametrize("era", [LEGACY, MODERN])
SLOW = '''

@tool.pure("slow")
async def slow() -> str:
    """Take a while"""
    import asyncio

    await asyncio.sleep(1.5)
    return "done"
'''
SOURCE = {"source": "http://a.test/x"}
DONE = [{"name": name, "status": "completed"} for name in ("fetch", "transform", "store")]


def spoken(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]["text"]) for one in result["messages"]]


async def prompt(client: Wire, name: str = "data-pipeline") -> dict[str, Any]:
    return await client.good("prompts/get", {"name": name, "arguments": SOURCE})


async def completed(client: Wire, task: str) -> dict[str, Any]:
    """Complete it with a result, and see that it is."""
    done = {"stored": 1, "source": "mirror"}
    ended = await client.good("tasks/cancel", {"taskId": task, "result": done})
    if client.era == LEGACY:
        assert ended["status"] == "completed"
        result = await client.good("tasks/result", {"taskId": task})
        assert result.pop("_meta")["io.modelcontextprotocol/related-task"] == {"taskId": task}
    else:
        assert {key: ended[key] for key in ("resultType",)} == {"resultType": "complete"}
        result = (await client.good("tasks/get", {"taskId": task}))["result"]
    assert (result["structuredContent"], result["isError"]) == (done, False)
    assert json.loads(result["content"][0]["text"]) == done
    return await client.good("tasks/get", {"taskId": task})


@BOTH
@pytest.mark.req("FNDX-01", "EXEC-02.d", "EXEC-03", "HAND-01", "CONT-01", "INTG-04")
async def test_the_whole_story(tmp_path: Path, era: str) -> None:
    async with wire(make_project(tmp_path), era) as client:
        begun = await prompt(client)
        assert spoken(begun) == [*PLAIN_MESSAGES, ("assistant", HANDOFF)]
        meta = begun["_meta"]
        task = meta["task_id"]
        assert re.fullmatch(r"mt_[A-Za-z0-9_-]{32}", task)
        assert {key: meta[key] for key in ("task_status", "steps", "pause_reason")} == {
            "task_status": "input_required",
            "steps": [
                {"name": "fetch", "status": "failed"},
                {"name": "transform", "status": "pending"},
                {"name": "store", "status": "pending"},
            ],
            "pause_reason": REASON,
        }
        assert all(task not in text for _, text in spoken(begun))
        assert (await client.good("tasks/get", {"taskId": task}))["_meta"]["_workflow.pause_reason"] == REASON
        first = await client.call("fetch_data", {"source": "http://mirror.test/x"}, task)
        assert first["content"] == [{"type": "text", "text": '{"lines":["a,1"]}'}]
        assert first["structuredContent"] == {"lines": ["a,1"]}
        assert first["_meta"]["task_status"] == "working"
        assert "pause_reason" not in first["_meta"]
        await client.call("transform_data", {"data": "<output from raw_data>", "format": "rows"}, task)
        last = await client.call("store_data", {"payload": [["a", 1]]}, task)
        assert last["_meta"]["steps"] == DONE
        polled = await client.good("tasks/get", {"taskId": task})
        assert (polled["status"], polled["statusMessage"]) == ("working", "All steps done. Complete it with a result.")
        variables = polled["_meta"]
        assert variables["_workflow.progress"] == {
            "goal": "data-pipeline: fetch, transform and store records",
            "schemaVersion": 1,
            "steps": [
                {"name": "fetch", "tool": "fetch_data", "status": "completed"},
                {"name": "transform", "tool": "transform_data", "status": "completed"},
                {"name": "store", "tool": "store_data", "status": "completed"},
            ],
        }
        assert variables["_workflow.result.transform"] == {"rows": [["a", 1]]}
        assert "_workflow.pause_reason" not in variables
        ended = await completed(client, task)
        assert (ended["status"], ended["statusMessage"]) == ("completed", "Done: 3 of 3 steps.")
        assert await client.leave() == 0
    assert (tmp_path / "calls.log").read_text().split() == ["fetch", "fetch", "transform", "store"]


@BOTH
@pytest.mark.req("INTG-02")
async def test_a_plain_prompt_says_the_same_and_leaves_no_task(tmp_path: Path, era: str) -> None:
    async with wire(make_project(tmp_path), era) as client:
        said = await prompt(client, "plain-pipeline")
        assert spoken(said) == PLAIN_MESSAGES
        assert "task_id" not in said.get("_meta", {})


@pytest.mark.req("INTG-04")
async def test_the_server_goes_on_by_itself(tmp_path: Path) -> None:
    async with wire(make_project(tmp_path, "server"), MODERN) as client:
        begun = await prompt(client)
        assert spoken(begun)[-1][1].endswith(
            "\n\nAfter that the server continues by itself with: transform_data, store_data.\n"
        )
        task = begun["_meta"]["task_id"]
        await client.call("fetch_data", {"source": "http://mirror.test/x"}, task)
        result = await client.call("get_task", {"task": task, "wait_s": 20})
        assert result["structuredContent"]["outputs"] == {"completed": True, "steps_completed": 3}


async def listed(folder: Path) -> list[dict[str, Any]]:
    """What `everstep ls` shows."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everstep", "--json", "ls"),
        cwd=folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return list(json.loads(out)["items"])


MOMENTS = ["prompt", "fetch", "transform", "store", "complete"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.req("INTG-04", "FNDX-01")
async def test_the_server_is_killed_between_two_moments(tmp_path: Path, moment: str) -> None:
    """What was told is there; the next server goes on with it, and nothing is called twice."""
    folder = make_project(tmp_path)
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "fetch": ("fetch_data", {"source": "mirror"}),
        "transform": ("transform_data", {"data": "<output from raw_data>"}),
        "store": ("store_data", {"payload": [["a", 1]]}),
    }
    todo = MOMENTS[1:-1]
    async with wire(folder, MODERN) as client:
        task = (await prompt(client))["_meta"]["task_id"]
        while todo and MOMENTS.index(todo[0]) <= MOMENTS.index(moment):
            tool, arguments = calls[todo.pop(0)]
            await client.call(tool, arguments, task)
        if moment == "complete":
            await completed(client, task)
        os.kill(client.process.pid, signal.SIGKILL)
    async with wire(folder, LEGACY) as client:
        there = await client.good("tasks/get", {"taskId": task})
        assert there["status"] == {"prompt": "input_required", "complete": "completed"}.get(moment, "working")
        if moment == "prompt":
            assert [one["plan"]["name"] for one in await listed(folder)] == ["data-pipeline"]
        for step in todo:
            tool, arguments = calls[step]
            assert not (await client.call(tool, arguments, task))["isError"]
        if moment != "complete":
            await completed(client, task)
        assert (await client.good("tasks/get", {"taskId": task}))["status"] == "completed"
    assert (tmp_path / "calls.log").read_text().split() == ["fetch", "fetch", "transform", "store"]


@pytest.mark.req("CONT-03", "EXEC-05")
async def test_a_second_server_speaks_to_the_first(tmp_path: Path) -> None:
    """Another client, another process, the same task: whoever holds the store does the work."""
    folder = make_project(tmp_path)
    async with wire(folder, MODERN) as first, wire(folder, LEGACY) as second:
        task = (await prompt(first))["_meta"]["task_id"]
        again = await second.good("prompts/get", {"name": "continue_task", "arguments": {}})
        assert spoken(again)[-1] == ("assistant", HANDOFF)
        assert again["_meta"]["task_id"] == task
        assert not (await second.call("fetch_data", {"source": "mirror"}, task))["isError"]
        listed = await second.good("tasks/list")
        assert [one["taskId"] for one in listed["tasks"]][:1] == [task]
        assert (await first.good("tasks/get", {"taskId": task}))["status"] == "working"


@pytest.mark.req("CONT-01")
async def test_the_official_client_tells_the_same_story(tmp_path: Path) -> None:
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    folder = make_project(tmp_path)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "everstep", "mcp"], cwd=str(folder), env=environment()
    )
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as client:
        await client.initialize()
        assert "data-pipeline" in [one.name for one in (await client.list_prompts()).prompts]
        begun = await client.get_prompt("data-pipeline", SOURCE)
        assert [one.content.text for one in begun.messages][-1] == HANDOFF  # type: ignore[union-attr]
        assert begun.meta is not None
        task = begun.meta["task_id"]
        made = await client.call_tool("fetch_data", {"source": "mirror"}, meta=cast("Any", {"_task_id": task}))
        assert made.structured_content == {"lines": ["a,1"]}


@BOTH
@pytest.mark.req("CONT-03")
async def test_R26_changes_are_told(tmp_path: Path, era: str) -> None:
    """The older revision tells the session that made the task, the newer whoever listens."""
    folder = make_project(tmp_path)
    with (folder / "pipeline_tools.py").open("a") as tools:
        tools.write(SLOW)
    with (folder / "everstep.toml").open("a") as config:
        config.write('[mcp]\nexpose = ["slow"]\ntask_after = "100ms"\n')
    async with wire(folder, era) as client:
        if era == LEGACY:
            call = {"name": "slow", "arguments": {}, "task": {"ttl": 60000}}
            task = (await client.good("tools/call", call))["task"]["taskId"]
            assert (await client.good("tasks/result", {"taskId": task}))["structuredContent"] == {"result": "done"}
            told = [one["params"] for one in client.heard if one["method"] == "notifications/tasks/status"]
        else:
            made = await client.call("slow", {})
            assert made["resultType"] == "task"
            task = made["taskId"]
            await client.good("subscriptions/listen", {"notifications": {"taskIds": [task, "mt_none"]}})
            first = client.heard[0]
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"]["notifications"]["taskIds"] == [task]
            told = [one["params"] for one in client.heard if one["method"] == "notifications/tasks"]
            assert told[-1]["result"]["structuredContent"] == {"result": "done"}
        assert {one["taskId"] for one in told} == {task}
        assert told[0]["status"] == "working"


@BOTH
async def test_a_subscribed_resource_tells_of_changes(tmp_path: Path, era: str) -> None:
    async with wire(make_project(tmp_path), era) as client:
        begun = await client.good("prompts/get", {"name": "data-pipeline", "arguments": {"source": "http://a.test/x"}})
        task = begun["_meta"]["task_id"]
        uri = f"task://{task}/variables"
        if era == LEGACY:
            assert (await client.ask("resources/subscribe", {"uri": "task://mt_none"}))["error"]["code"] == -32002
            assert await client.good("resources/subscribe", {"uri": uri}) == {}
            await client.call("complete_task", {"result": 1}, task)
            await client.hear("notifications/resources/updated")
        else:
            wanted = {"resourceSubscriptions": [uri, "task://mt_none"], "promptsListChanged": False}
            listening = await client.begin("subscriptions/listen", {"notifications": wanted})
            first = await client.hear("notifications/subscriptions/acknowledged")
            await client.call("complete_task", {"result": 1}, task)
            await client.hear("notifications/resources/updated")
            await client.end(listening)
            assert first["params"]["notifications"] == {"resourceSubscriptions": [uri]}
        heard = [one["params"] for one in client.heard if one.get("method") == "notifications/resources/updated"]
        assert {one["uri"] for one in heard} == {uri}


@pytest.mark.req("INTG-03")
async def test_the_demo_plays_both_sides(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everstep", "demo", "mcp-handoff"),
        cwd=tmp_path,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 0
    assert HANDOFF.rstrip() in said.decode()
    assert "Done: 3 of 3 steps." in said.decode()
