"""Permissions: checked with the plan and again before each call; and everything else that is wrong, at once."""

from pathlib import Path
from typing import Any

import pytest

from everstep import Plan, PlanError, ToolAdapter, tool
from everstep.domain.errors import SettingsError
from everstep.domain.permissions import lacking
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolSpec
from everstep.testing import TestEngine

READER: JsonObject = {"policy.permissions": {"local": ["fs.read"]}}


def writing() -> Plan:
    plan = Plan("writing")
    plan.step("look", "file.list", {})
    plan.step("write", "file.write", {"path": "a.txt", "text": "a"})
    return plan


async def told(task: Any, *types: str) -> list[tuple[str, JsonObject]]:
    return [(event.type, event.data) async for event in task.events(follow=False) if event.type in types]


@pytest.mark.req("WF-25")
async def test_a_plan_that_may_not_write_is_refused(tmp_path: Path) -> None:
    async with TestEngine(config=READER, workspace=tmp_path) as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(writing())
    (problem,) = refused.value.problems
    assert (problem.code, problem.path) == ("plan.permission_denied", "/steps/1/tool")
    assert "fs.write" in problem.message
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.req("WF-25")
@pytest.mark.parametrize("others", [(), ({"value": "nothing"},)], ids=["fails", "falls back"])
async def test_what_is_taken_away_later_is_denied_before_the_call(tmp_path: Path, others: Any) -> None:
    plan = Plan("writing")
    gate = plan.step("gate", "ask", {"question": "go on?"})
    plan.step("write", "file.write", {"path": "a.txt", "text": "a"}, needs=[gate], fallback=[*others])
    config: JsonObject = {}
    async with TestEngine(config=config, workspace=tmp_path) as engine:
        task = await engine.start(plan)
        await task.result(on_pause="return")
        store, clock = engine.store, engine.clock
    async with TestEngine(config=READER, workspace=tmp_path, store=store, clock=clock) as engine:
        task = await engine.get(task.id)
        await engine.inbox.only().answer("yes")
        result = await task.result()
        events = await told(task, "step.denied", "attempt.started", "step.failed", "step.completed")
    assert result.status == ("completed" if others else "failed")
    (denied,) = [data for kind, data in events if kind == "step.denied"]
    assert denied["permission"] == "fs.write"
    assert "file.write" not in {data["tool"] for kind, data in events if kind == "attempt.started"}
    assert not (tmp_path / "a.txt").exists()
    if not others:
        assert result.error is not None
        assert (result.error["code"], result.error["category"]) == ("permission_denied", "permission")


@pytest.mark.req("WF-25")
async def test_names_that_nobody_knows_are_refused() -> None:
    with pytest.raises(SettingsError):
        TestEngine(config={"policy.permissions": {"local": ["fs.read", "fs.wirte"]}})

    @tool("odd.one", permissions=("fs.fly",))
    async def odd() -> None:
        """Odd."""

    with pytest.raises(SettingsError, match=r"fs\.fly"):
        await TestEngine([odd]).open()


@pytest.mark.req("WF-25")
def test_what_a_grant_covers() -> None:
    assert lacking(("fs.write",), None) is None
    assert lacking(("fs.write:docs",), ("fs.write",)) is None
    assert lacking(("fs.write:docs",), ("fs.write:docs",)) is None
    assert lacking(("fs.write",), ("fs.write:docs",)) == "fs.write"
    assert lacking(("fs.read", "net.http"), ("fs.read",)) == "net.http"
    assert lacking((), ()) is None


@pytest.mark.req("WF-25")
async def test_every_built_in_tool_that_reaches_something_says_so() -> None:
    async with TestEngine() as engine:
        assert engine._parts is not None
        needs = {one.spec.name: one.spec.permissions for one in engine._parts.runtime.kit.catalog.entries()}
    assert {needs[name] for name in needs if name.startswith("file.")} == {("fs.read",), ("fs.write",)}
    assert needs["http.download"] == ("net.http", "fs.write")
    assert {needs[name] for name in needs if name.startswith(("text.", "json."))} == {()}


# --- everything at once ---


@pytest.mark.req("W.1", "6.3")
async def test_all_that_is_wrong_is_said_in_one_answer(tmp_path: Path) -> None:
    file = tmp_path / "bad.plan.yaml"
    file.write_text("""
name: bad
limits: {calls: 1000000}
steps:
  - {id: a, tool: file.write, with: {path: a.txt, text: a}}
  - {id: b, tool: http.get, with: {url: "http://example.com/", auth: {secret: "${secrets.nowhere}"}}}
  - {id: c, tool: text.jion, with: {texts: []}}
  - {id: d, tool: text.join, with: {texts: [a]}, needs: [e]}
""")
    config: JsonObject = {"policy.permissions": {"local": ["fs.read", "net.http"]}}
    async with TestEngine(config=config, workspace=tmp_path) as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(file)
        found = {(one.code, one.path) for one in refused.value.problems}
        assert found >= {
            ("plan.permission_denied", "/steps/0/tool"),
            ("plan.unknown_secret", "/steps/1/with/auth/secret"),
            ("plan.unknown_tool", "/steps/2/tool"),
            ("plan.limit_above_policy", "/limits/calls"),
        }
        assert any(path.startswith("/steps/3/needs") for _, path in found)
    assert not (tmp_path / "a.txt").exists()


class Picky(ToolAdapter):
    """Takes two numbers, the first the smaller."""

    def __init__(self) -> None:
        self.called = 0

    def tools(self) -> tuple[ToolSpec]:
        """One."""
        number: JsonObject = {"type": "integer", "minimum": 0}
        schema: JsonObject = {
            "type": "object",
            "properties": {"a": number, "b": number, "name": {"type": "string"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }
        return (ToolSpec(name="picky.call", version="1", title="Picky", description="Picky.", input_schema=schema),)

    def validate(self, call: Any) -> list[tuple[str, str]]:
        """Beyond the schema."""
        arguments, problems = call.arguments, []
        if arguments.get("name") == "nobody":
            problems.append(("/name", "is nobody"))
        if "a" in arguments and "b" in arguments and arguments["a"] > arguments["b"]:
            problems.append(("/a", "is more than 'b'"))
        return problems

    async def execute(self, call: Any, ctx: Any) -> int:
        """Counted."""
        self.called += 1
        return 0


@pytest.mark.req("6.3")
async def test_what_the_family_has_against_arguments_is_said_with_the_plan() -> None:
    plan = Plan("calling", inputs={"b": int})
    plan.step("one", "picky.call", {"a": "7", "b": 3, "name": "nobody"})
    plan.step("two", "picky.call", {"a": -1, "b": plan.inputs.b, "name": "nobody"})
    picky = Picky()
    async with TestEngine([picky]) as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(plan, {"b": 1})
    assert {problem.path for problem in refused.value.problems} == {
        "/steps/0/with/a",
        "/steps/0/with/name",
        "/steps/1/with/a",
        "/steps/1/with/name",
    }
    assert picky.called == 0


@pytest.mark.req("6.3")
async def test_and_again_when_the_bindings_are_filled_in() -> None:
    plan = Plan("calling", inputs={"a": str, "b": int, "name": str})
    plan.step("one", "picky.call", {"a": plan.inputs.a, "b": plan.inputs.b, "name": plan.inputs.name})
    picky = Picky()
    async with TestEngine([picky]) as engine:
        result = await (await engine.start(plan, {"a": "7", "b": 3, "name": "nobody"})).result()
        assert result.error is not None
        assert result.error["code"] == "invalid_arguments"
        message = str(result.error["message"])
        assert "is more than 'b'" in message
        assert "is nobody" in message
        result = await (await engine.start(plan, {"a": "x", "b": -3, "name": "nobody"})).result()
        assert result.error is not None
        assert all(word in str(result.error["message"]) for word in ("/a", "/b", "is nobody"))
        assert picky.called == 0
        result = await (await engine.start(plan, {"a": "1", "b": 3, "name": "ana"})).result()
        assert (result.status, picky.called) == ("completed", 1)
