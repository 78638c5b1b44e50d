"""Durable functions through the doors: the command line, HTTP, and a kill in between."""

from pathlib import Path
from typing import Any

import pytest

from everstep import durable, tool
from tests.e2e.commands import Project
from tests.e2e.mcp_project import LEGACY, wire
from tests.e2e.served import served

MODULE = '''
from everstep import durable, tool

@tool.pure("lab.add")
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    with open("calls", "a") as log:
        log.write(f"{a}+{b}\\n")
    return a + b

@durable("adder", version="1")
async def adder(ctx, times: int, label: str = "x") -> dict:
    """Add one after the other, then ask."""
    ctx.stages(["lab.add", "ask"])
    total = 0
    for _ in range(times):
        total = await ctx.call(add, {"a": total})
    return {"total": total, "who": await ctx.ask("Who?"), "label": label}
'''


@pytest.mark.req("X.4")
def test_the_command_line_starts_shows_and_goes_on_with_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("agent.py", MODULE)
    project.write("everstep.toml", 'tools = ["agent"]\n')
    first = project.run("run", "agent:adder", "-i", "times=3", "--json", "--no-input")
    assert first.code == 8, first.err
    task = first.lines[-1]["task"]
    assert task["progress"]["fraction"] == 0.5
    again = project.run("run", "adder", "-i", "times=3", "--json", "--no-input")
    assert again.lines[-1]["task"]["id"] == task["id"]
    shown = project.run("show", task["id"], "--json").json
    assert [step["id"] for step in shown["steps"]] == ["lab_add_1", "lab_add_2", "lab_add_3", "ask_1"]
    (listed,) = project.run("ls", "--json").json["items"]
    assert (listed["id"], listed["progress"]["done"], listed["progress"]["total"]) == (task["id"], 3, 3)
    pause = project.run("inbox", "--json").json["items"][0]["id"]
    ended = project.run("answer", pause, "answer", "--value", '"ana"', "--json", "--wait")
    assert ended.code == 0, ended.err
    assert project.run("show", task["id"], "--json").json["outputs"] == {"label": "x", "total": 3, "who": "ana"}
    assert (tmp_path / "calls").read_text().splitlines() == ["0+1", "1+1", "2+1"]
    assert project.run("db", "check").code == 0


@pytest.mark.req("X.4")
def test_whoever_answers_without_the_function_does_not_wait_for_it(tmp_path: Path) -> None:
    """The program that has the function is another one: the answer is kept for it, and the command ends."""
    project = Project(tmp_path)
    project.write("agent.py", MODULE)
    assert project.run("run", "agent:adder", "-i", "times=1", "--json", "--no-input").code == 8
    pause = project.run("inbox", "--json").json["items"][0]["id"]
    answered = project.run("answer", pause, "answer", "--value", '"ana"')
    assert answered.code == 0, answered.err
    assert "goes on where adder is" in answered.err
    refused = project.run("resume", project.run("ls", "--json").json["items"][0]["id"])
    assert "waits for adder" in refused.err
    ended = project.run("run", "agent:adder", "-i", "times=1", "--json", "--no-input")
    assert ended.lines[-1]["task"]["outputs"] == {"label": "x", "total": 1, "who": "ana"}


def test_it_is_refused_like_a_plan(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("agent.py", MODULE)
    assert project.run("run", "agent:adder").code == 3
    assert project.run("run", "agent:adder", "-i", "times=x").code == 3
    assert project.run("run", "agent:addre").code == 5
    assert "2 steps" not in project.run("run", "agent:adder", "-i", "times=1", "--dry-run").out


@tool.pure("lab.inc")
async def inc(n: int) -> int:
    """Add one."""
    return n + 1


@durable("counter", version="1")
async def counter(ctx: Any, n: int) -> dict[str, int]:
    """Count once, with leave."""
    await ctx.approve("Count?")
    return {"n": await ctx.call(inc, {"n": n})}


async def test_over_http_it_is_started_by_name_and_never_sent(tmp_path: Path) -> None:
    async with served(tmp_path, [counter]) as door:
        named = {"plan_name": "counter", "inputs": {"n": 1}}
        task = (await door.good("POST", "/v1/tasks", named))["id"]
        sent = await door.http.post("/v1/tasks", json={"plan": counter.to_dict(), "inputs": {"n": 1}})
        assert sent.status_code == 422
        plans = (await door.good("GET", "/v1/plans"))["items"]
        assert [plan["name"] for plan in plans] == ["counter"]
        events = (await door.good("GET", f"/v1/tasks/{task}/events?after=0&wait=20"))["events"]
        assert events[0]["data"]["plan"]["durable"] == "1"
        while (await door.good("GET", f"/v1/tasks/{task}"))["status"] != "paused":
            await door.good("GET", f"/v1/tasks/{task}/events?after={events[-1]['seq']}&wait=1")
        (pause,) = (await door.good("GET", "/v1/inbox"))["items"]
        approve = next(one for one in pause["answers"] if one["answer"] == "approve")["request"]
        await door.good(approve["method"], approve["path"], approve["body"])
        result = await (await door.engine.get(task)).result()
        assert result.outputs == {"n": 2}
        whole = await door.good("GET", f"/v1/tasks/{task}?include=plan,attempts")
        assert [step["id"] for step in whole["steps"]] == ["approve_1", "lab_inc_1"]
        assert whole["plan_source"]["durable"] == "1"


@pytest.mark.req("X.4")
async def test_an_mcp_client_starts_it_answers_it_and_reads_what_it_gave(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(MODULE)
    (tmp_path / "everstep.toml").write_text('tools = ["agent"]\n[mcp]\nexpose = ["lab.add"]\n')
    async with wire(tmp_path, LEGACY) as client:
        client.answers = [{"action": "accept", "content": {"answer": "answer", "value_json": '"ana"'}}]
        listed = (await client.call("list_plans", {}))["structuredContent"]["plans"]
        assert "adder" in [plan["name"] for plan in listed]
        call = {"name": "run_plan", "arguments": {"plan": "adder", "inputs": {"times": 3}}, "task": {"ttl": 60000}}
        task = (await client.good("tools/call", call))["task"]["taskId"]
        result = await client.good("tasks/result", {"taskId": task})
        assert result["structuredContent"] == {"label": "x", "total": 3, "who": "ana"}
    assert (tmp_path / "calls").read_text().splitlines() == ["0+1", "1+1", "2+1"]
