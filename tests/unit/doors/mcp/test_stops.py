"""Every way in which a workflow stops: typed, logged, the same for every door and told alike with tasks and without."""

import ast
import asyncio
import inspect
import json
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest
from hypothesis import given

from everstep import Plan
from everstep.domain import pauses as p
from everstep.domain.ids import Instant, PauseId, StepPath, TaskId
from everstep.domain.pauses import ANSWERS, Pause
from everstep.doors.mcp import prompts
from everstep.doors.mcp.story import story_of
from everstep.mcp import PAUSE_REASON
from everstep.wire.handoff import variables_json
from everstep.wire.pause import decode_pause, encode_pause
from tests.unit.doors.mcp.stage import CALLER, NEW, pipeline, plan_of, stage
from tests.unit.wire.test_event import records

TEXT = {"type": "string"}


def shape(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


CORE = {
    "unresolvableParams": shape(type=TEXT, blockedStep=TEXT, missingParam=TEXT, suggestedTool=TEXT),
    "schemaMismatch": shape(
        type=TEXT, blockedStep=TEXT, missingFields={"type": "array", "items": TEXT}, suggestedTool=TEXT
    ),
    "toolError": shape(type=TEXT, failedStep=TEXT, error=TEXT, retryable={"type": "boolean"}, suggestedTool=TEXT),
    "unresolvedDependency": shape(
        type=TEXT, blockedStep=TEXT, missingOutput=TEXT, producingStep=TEXT, suggestedTool=TEXT
    ),
}
MIRROR = {"source": "mirror"}


def asking(step: str) -> Plan:
    steps: dict[str, dict[str, Any]] = {
        "unresolvableParams": {"id": "a", "tool": "say", "with": {"text": "${inputs.gone}"}},
        "schemaMismatch": {"id": "a", "tool": "area", "with": {"size": "${inputs.size}"}},
        "toolError": {"id": "a", "tool": "fetch_data", "with": {"source": "nowhere"}, "retry": 0},
        "approvalRequired": {"id": "a", "tool": "say", "with": {"text": "x"}, "approve": True},
        "inputRequired": {"id": "a", "tool": "ask", "with": {"question": "Which?"}},
        "uncertainOutcome": {"id": "a", "tool": "risky"},
        "limitReached": {"id": "a", "tool": "say", "with": {"text": "x"}},
    }
    inputs = {"gone": "string", "size": "object"}
    limits = {"limits": {"calls": 1}} if step == "limitReached" else {}
    return plan_of({"id": "z", "tool": "say", "with": {"text": "first"}}, steps[step], inputs=inputs, **limits)


ANSWER = "1. Call answer_pause with {answers}\n   Note: The server goes on by itself after the answer.\n"
SAID = {
    "unresolvableParams": (
        "Could not resolve parameter 'text' for step 'a'.",
        '1. Call say with {"text":"<prompt arg gone>"}\n',
    ),
    "schemaMismatch": (
        "Step 'a' has missing required fields: size.height, size.width.",
        '1. Call area with {"size":{}}\n',
    ),
    "toolError": ("Step 'a' failed: connection refused.", ""),
    "approvalRequired": ("Step 'a' needs approval before it runs.", ANSWER),
    "inputRequired": ("Step 'a' needs an answer: Which?", ANSWER),
    "uncertainOutcome": (
        "Step 'a' was interrupted and may already have happened. Check before anything is repeated.",
        ANSWER,
    ),
    "limitReached": ("The task reached its limit 'calls' (1 of 1).", ANSWER),
}
"""The whole of the last message, by why it stands still: what happened, and what remains."""
STOPS = [*SAID]
GIVEN = {"size": "{}"}


@pytest.mark.req("EXEC-02", "EXEC-02.a", "EXEC-02.f", "EXEC-02.g", "EXEC-01.a", "HAND-01")
@pytest.mark.parametrize("kind", STOPS)
async def test_a_stop_is_typed_logged_and_the_same_everywhere(kind: str) -> None:
    async with stage(asking(kind)) as on:
        told = await on.prompt(GIVEN)
        meta = told["_meta"]
        assert (meta["pause_reason"]["type"], meta["task_status"]) == (kind, "input_required")
        if kind in CORE:
            jsonschema_rs.validate(CORE[kind], meta["pause_reason"])
        (item,) = (await on.ask("GET", "/v1/inbox"))["items"]
        (task,) = await on.all_tasks()
        assert task["status"] == "paused"
        journal = (await on.ask("GET", f"/v1/tasks/{task['id']}/events?after=0"))["events"]
        (opened,) = [one["data"] for one in journal if one["type"] == "pause.opened"]
        polled = (await on.tasks.get(NEW, meta["task_id"]))["_meta"]
        spelled = {json.dumps(one) for one in (meta["pause_reason"], item["reason"], opened["reason"])}
        assert spelled == {json.dumps(polled[PAUSE_REASON])}
        progress = {one["name"]: one["status"] for one in polled["_workflow.progress"]["steps"]}
        kept = {name for name in progress if f"_workflow.result.{name}" in polled}
        assert {name for name, status in progress.items() if status == "completed"} == kept - {"a"}
        assert polled["everstep/seq"] == journal[-1]["seq"]
        lines = [fields for event, fields in on.engine.sink.notes if event == "a task waits"]
        step = None if kind == "limitReached" else "a"
        assert [(line["task"], line["step"], line["reason"]) for line in lines] == [(task["id"], step, kind)]
        last = told["messages"][-1]
        happened, remains = SAID[kind]
        answers = json.dumps({"answer": "|".join(one["answer"] for one in item["answers"])}, separators=(",", ":"))
        asks = "To continue the workflow, make these tool calls:"
        assert last["content"]["text"] == f"{happened}\n\n{asks}\n\n{remains.replace('{answers}', answers)}"
        assert last["role"] == "assistant"


@pytest.mark.req("EXEC-01.a")
async def test_whoever_looks_while_it_runs_sees_one_moment_of_the_journal() -> None:
    """Every poll is what the journal says up to the event it names: nothing of later, nothing missing."""
    async with stage() as on:
        asking = asyncio.ensure_future(on.prompt(MIRROR))
        seen: dict[int, Any] = {}
        handle = ""
        while not asking.done():
            await asyncio.sleep(0)
            for task in await on.all_tasks():
                handle = (await on.desk.view(NEW, (await on.desk.story(NEW, task["id"])).state)).handle
                polled = (await on.tasks.get(NEW, handle))["_meta"]
                seen[polled["everstep/seq"]] = polled
        (task,) = await on.all_tasks()
        journal = (await on.ask("GET", f"/v1/tasks/{task['id']}/events?after=0"))["events"]
        assert len(seen) > 1, "it was looked at on its way"
        for seq, polled in seen.items():
            told = await story_of(
                on.desk.channel, CALLER, [json.dumps(one).encode() for one in journal if one["seq"] <= seq]
            )
            variables = variables_json(told.state, handle)
            assert {name: value for name, value in polled.items() if name.startswith("_workflow.")} == variables


@pytest.mark.req("FNDX-05")
def test_there_is_one_way_to_tell_a_workflow() -> None:
    """Plain and task-backed prompts use the same functions to make, follow, read and tell a task."""
    tree = ast.parse(inspect.getsource(prompts))
    calls: dict[str, set[str]] = {
        one.name: {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(one)
            if isinstance(node, ast.Call)
        }
        for one in ast.walk(tree)
        if isinstance(one, ast.AsyncFunctionDef | ast.FunctionDef)
    }
    assert {"_wait", "_read", "_told"} <= calls["_plain"] & calls["_backed"]
    assert [name for name, used in calls.items() if "transcript" in used] == ["_told"]
    assert [name for name, used in calls.items() if "_make" in used] == ["get", "_plain"]
    folder = Path(prompts.__file__).parent
    users = [file.name for file in folder.glob("*.py") if "transcript(" in file.read_text(encoding="utf-8")]
    assert sorted(users) == ["prompts.py", "workflow.py"]


@pytest.mark.req("FNDX-05", "INTG-02")
@pytest.mark.parametrize("plan", [*map(asking, STOPS), pipeline()], ids=[*STOPS, "whole"])
async def test_with_tasks_and_without_the_same_is_said_up_to_the_hand_over(plan: Plan) -> None:
    arguments = MIRROR if plan.spec.inputs[0].name == "source" else GIVEN
    async with stage(plan) as on, stage(plan, task_support=False) as plain:
        backed, bare = await on.prompt(arguments), await plain.prompt(arguments)
    whole = backed["_meta"]["task_status"] == "completed"
    assert backed["messages"][: None if whole else -1] == bare["messages"]
    assert "_meta" not in bare
    assert on.work.calls == plain.work.calls


@pytest.mark.req("EXEC-02.b")
def test_the_tag_is_type_and_keys_are_camel_case() -> None:
    reason = p.ToolErrorPause(
        failed_step=StepPath("deploy"), error="timeout", retryable=True, suggested_tool="deploy_service"
    )
    literal = (
        '{"type":"toolError","failedStep":"deploy","error":"timeout","retryable":true,"suggestedTool":"deploy_service"}'
    )
    assert literal.encode() in encode_pause(pause_of(reason), TaskId("t_1"), Instant(0))


def pause_of(reason: p.Reason) -> Pause:
    return Pause(id=PauseId("p_1"), step=StepPath("a"), reason=reason, title="T", why="W")


@pytest.mark.req("EXEC-02.c")
@pytest.mark.parametrize("kind", get_args(p.Reason), ids=lambda kind: kind.__name__)
def test_every_reason_survives_a_round_trip(kind: type) -> None:
    @given(records(kind))
    def check(reason: p.Reason) -> None:
        assert decode_pause(encode_pause(pause_of(reason), TaskId("t_1"), Instant(0))).reason == reason

    check()


@pytest.mark.req("EXEC-02.e")
def test_every_reason_is_explained() -> None:
    page = (Path(__file__).parents[4] / "docs/concepts/failures.md").read_text(encoding="utf-8")
    for reason, kind in p.TYPE_OF.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{kind}` |")]
        _, _, when, answers, _ = row.split("|")
        assert when.strip() == str(reason.__doc__).partition("\n")[0]
        assert [word.strip(" `") for word in answers.split(",")] == [*ANSWERS[kind]]
