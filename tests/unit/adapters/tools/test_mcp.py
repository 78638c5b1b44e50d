"""`mcp.<server>.<tool>`: the operator lets tools in and says what they may do; a server that changes is not called."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everstep import Plan, Result
from everstep.domain.values import JsonObject
from everstep.engine.catalog import Entry
from everstep.testing import TestEngine

SERVERS = Path(__file__).parents[1] / "remote"


def config(place: Path, script: str = "hostile_server.py", **more: Any) -> JsonObject:
    server = {
        "command": [sys.executable, str(SERVERS / script)],
        "tools": ["echo", "wreck", "drop"],
        "effects": {"echo": "pure", "wreck": "idempotent"},
        **more,
    }
    return {"mcp.servers": {"other": server}, "containment.uid_base": 0, "store": str(place / "s.db")}


def plan_of(*calls: tuple[str, JsonObject]) -> Plan:
    plan = Plan("remote")
    for number, (tool, arguments) in enumerate(calls):
        plan.step(f"call{number}", f"mcp.other.{tool}", arguments, retry=0)
    plan.output(value=plan.expr(f"call{len(calls) - 1}"))
    return plan


async def ran(engine: TestEngine, *calls: tuple[str, JsonObject]) -> Result:
    return await (await engine.start(plan_of(*calls))).result()


def entries(engine: TestEngine) -> Sequence[Entry]:
    assert engine._parts is not None
    return engine._parts.runtime.kit.catalog.entries()


def wreck(how: str) -> tuple[str, JsonObject]:
    return ("wreck", {"how": how})


async def test_a_tool_of_a_server(tmp_path: Path) -> None:
    said = config(tmp_path, env={"TOKEN": "secret:mine"})
    async with TestEngine([], config=said, workspace=tmp_path, secrets={"mine": "hunter2-correct"}) as engine:
        result = await ran(engine, ("echo", {"text": "hello"}))
        assert result.status == "completed", result.error
        value: Any = (result.outputs or {})["value"]
        assert (value["text"], value["content"]) == ("hello", [{"type": "text", "text": "hello"}])
        assert value["structured"]["token"] == "[secret:mine]"  # it got the secret; nobody else sees it
        again: Any = ((await ran(engine, ("echo", {"text": "x"}))).outputs or {})["value"]
        assert again["structured"]["pid"] == value["structured"]["pid"]


@pytest.mark.parametrize(
    ("how", "code", "category", "effect"),
    [
        ("die", "mcp_broken", "transient", "unknown"),
        ("huge", "mcp_frame", "transient", "unknown"),
        ("error", "mcp_tool_error", "logic", "made"),
        ("refuse", "mcp_arguments", "configuration", "none"),
        ("large", "mcp_too_large", "resource", "made"),
    ],
)
async def test_trouble_is_told_apart(tmp_path: Path, how: str, code: str, category: str, effect: str) -> None:
    async with TestEngine([], config=config(tmp_path), workspace=tmp_path) as engine:
        task = await engine.start(plan_of(wreck(how)))
        await task.result()
        (failed,) = [event.data async for event in task.events(follow=False) if event.type == "attempt.failed"]
        error: Any = failed["error"]
        assert (error["code"], error["category"], failed["effect_state"]) == (code, category, effect)


async def test_a_server_that_dies_before_it_is_called_has_done_nothing(tmp_path: Path) -> None:
    said = config(tmp_path, env={"LIST": "die"}, effects={"drop": "once"}, tools=["drop"])
    async with TestEngine([], config=said, workspace=tmp_path) as engine:
        task = await engine.start(plan_of(("drop", {})))
        assert (await task.result()).status == "failed", "it is no question to anybody"
        (failed,) = [event.data async for event in task.events(follow=False) if event.type == "attempt.failed"]
        error: Any = failed["error"]
        assert (error["code"], failed["effect_state"]) == ("mcp_broken", "none")


async def test_a_server_that_died_between_two_calls_is_looked_at_again_and_called(tmp_path: Path) -> None:
    async with TestEngine([], config=config(tmp_path), workspace=tmp_path) as engine:
        adapter = next(entry.adapter for entry in entries(engine) if entry.spec.name == "mcp.other.echo")
        for _ in range(2):
            assert (await ran(engine, ("echo", {"text": "x"}))).status == "completed", "without a retry"
            await adapter.close()


async def test_R08_an_error_of_a_tool_is_a_failed_attempt_that_no_breaker_counts(tmp_path: Path) -> None:
    async with TestEngine([], config=config(tmp_path), workspace=tmp_path) as engine:
        for _ in range(7):
            result = await ran(engine, wreck("error"))
            assert result.error is not None
            assert (result.error["code"], result.error["category"]) == ("mcp_tool_error", "logic")


@pytest.mark.parametrize(("uri", "status"), [("docs://readme", "completed"), ("docs://none", "failed")])
async def test_resources_of_a_server_are_read_where_it_lists_their_scheme(
    tmp_path: Path, uri: str, status: str
) -> None:
    said = config(tmp_path, "good_server.py", resources=["docs"])
    plan = Plan.from_dict({"name": "p", "steps": [{"id": "a", "resources": [uri]}], "outputs": {"a": "${a}"}})
    async with TestEngine([], config=said, workspace=tmp_path) as engine:
        result = await (await engine.start(plan)).result()
        assert result.status == status, result.error
        if status == "completed":
            contents: Any = (result.outputs or {})["a"]
            assert [one["uri"] for one in contents["contents"]] == [uri]


async def test_a_tool_that_changes_is_not_called(tmp_path: Path) -> None:
    """Mid-task: the first call is the tool that was agreed to, the second one would be another."""
    async with TestEngine([], config=config(tmp_path), workspace=tmp_path) as engine:
        echo: tuple[str, JsonObject] = ("echo", {"text": "x"})
        result = await ran(engine, echo, wreck("changed"), echo)
        assert result.error is not None
        assert (result.error["code"], result.error["category"]) == ("tool_changed", "permission")
        assert "everstep mcp accept other" in str(result.error["what_to_do"])


@pytest.mark.parametrize("tool", ["drop", "echo"])
async def test_what_the_operator_has_not_judged_is_asked_about(tmp_path: Path, tool: str) -> None:
    async with TestEngine([], config=config(tmp_path, effects={}), workspace=tmp_path) as engine:
        task = await engine.start(plan_of((tool, {"text": "x"})))
        await engine.clock.advance("1ms")
        assert (await task.refresh()).status == "paused"
        assert engine.inbox.only().type == "approvalRequired"
        await engine.inbox.only().approve()
        assert (await task.result()).status == "completed"


async def test_hints_count_only_where_the_operator_says_so(tmp_path: Path) -> None:
    """They are known once the server was seen; a claim to destroy is asked about even against the operator's word."""
    effects = {"echo": "pure", "drop": "pure"}
    async with TestEngine([], config=config(tmp_path, effects=effects), workspace=tmp_path) as engine:
        await ran(engine, ("echo", {"text": "x"}))
    for trust in (True, False):
        said = config(tmp_path, effects={"drop": "pure"}, trust_hints=trust)
        async with TestEngine([], config=said, workspace=tmp_path) as engine:
            specs = {entry.spec.name: entry.spec for entry in entries(engine)}
            assert (specs["mcp.other.echo"].effect == "pure", specs["mcp.other.echo"].approve) == (trust, not trust)
            assert specs["mcp.other.drop"].approve


async def test_a_server_without_the_tool(tmp_path: Path) -> None:
    async with TestEngine(
        [], config=config(tmp_path, tools=["gone"], effects={"gone": "pure"}), workspace=tmp_path
    ) as engine:
        result = await ran(engine, ("gone", {}))
        assert result.error is not None
        assert result.error["code"] == "mcp_no_tool"


async def test_health(tmp_path: Path) -> None:
    async with TestEngine([], config=config(tmp_path), workspace=tmp_path) as engine:
        adapter = next(entry.adapter for entry in entries(engine) if entry.spec.name == "mcp.other.echo")
        assert (await adapter.health()).status == "healthy"
    async with TestEngine([], config=config(tmp_path, "no_such.py"), workspace=tmp_path) as engine:
        adapter = next(entry.adapter for entry in entries(engine) if entry.spec.name == "mcp.other.echo")
        assert (await adapter.health()).status == "unhealthy"
