"""The hand-off: what is said for every reason, which calls are offered, in which order."""

from typing import Any

import pytest

from everstep.domain import pauses as p
from everstep.domain.ids import Digest, PauseId, StepPath
from everstep.doors.mcp.handoff import happened
from tests.unit.doors.mcp.stage import NEW, pipeline, plan_of, stage

A, B = StepPath("a"), StepPath("b")


@pytest.mark.req("HAND-03.d")
@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            p.ToolErrorPause(failed_step=A, error="down", retryable=True, suggested_tool="t"),
            "Step 'a' failed: down. This step is retryable.",
        ),
        (p.ToolErrorPause(failed_step=A, error="down", retryable=False, suggested_tool="t"), "Step 'a' failed: down."),
        (
            p.UnresolvableParams(blocked_step=A, missing_param="x", suggested_tool="t"),
            "Could not resolve parameter 'x' for step 'a'.",
        ),
        (
            p.SchemaMismatch(blocked_step=A, missing_fields=("x", "y.z"), suggested_tool="t"),
            "Step 'a' has missing required fields: x, y.z.",
        ),
        (
            p.UnresolvedDependency(blocked_step=A, missing_output="raw", producing_step=B, suggested_tool="t"),
            "Step 'a' depends on output 'raw' from step 'b', which did not complete.",
        ),
        (
            p.ApprovalRequired(
                blocked_step=A, approval_id=PauseId("p_1"), digest=Digest("sha256:0"), suggested_tool="t"
            ),
            "Step 'a' needs approval before it runs.",
        ),
        (p.InputRequired(blocked_step=A, question="How many?", schema=None), "Step 'a' needs an answer: How many?"),
        (
            p.UncertainOutcome(blocked_step=A, attempt=1, idempotency_key="k", suggested_tool="t"),
            "Step 'a' was interrupted and may already have happened. Check before anything is repeated.",
        ),
        (p.LimitReached(limit="calls", used=5, max=5), "The task reached its limit 'calls' (5 of 5)."),
        (p.UserRequested(by="ana", note=None), "The task was paused by ana."),
        (p.ResourcePressure(what="memory", level=0.97), "The task waits because of pressure on memory."),
    ],
)
def test_every_reason_is_said_in_one_sentence(reason: p.Reason, text: str) -> None:
    assert happened(reason) == text


def calls(text: str) -> list[str]:
    return [line.partition("Call ")[2].partition(" ")[0] for line in text.splitlines() if ". Call " in line]


@pytest.mark.req("HAND-03.b")
@pytest.mark.parametrize("retryable", [True, False])
async def test_a_retryable_failed_step_comes_first_and_another_not_at_all(retryable: bool) -> None:
    plan = plan_of(
        {"id": "first", "tool": "say", "with": {"text": "x"}},
        {"id": "fetch", "tool": "fetch_data", "with": {"source": "a"}, "retry": 0, "retryable": retryable},
        {"id": "store", "tool": "store_data", "with": {"payload": [1]}},
        {"id": "last", "tool": "say", "with": {"text": "y"}},
    )
    async with stage(plan) as on:
        text = (await on.texts({}))[-1]
        assert calls(text) == [*(["fetch_data"] if retryable else []), "store_data", "say"]


@pytest.mark.req("FNDX-02")
async def test_the_same_plan_completes_or_pauses_by_what_it_is_given() -> None:
    async with stage(pipeline()) as on:
        whole = await on.prompt({"source": "mirror"})
        lacking = await on.prompt({})
        assert whole["_meta"]["task_status"] == "completed"
        assert {one["status"] for one in whole["_meta"]["steps"]} == {"completed"}
        assert len(whole["messages"]) == 8
        assert lacking["_meta"]["pause_reason"]["type"] == "unresolvableParams"
        assert [one["status"] for one in lacking["_meta"]["steps"]] == ["pending"] * 3
        assert "<prompt arg source>" in lacking["messages"][-1]["content"]["text"]


@pytest.mark.req("EXEC-04.a")
async def test_all_missing_fields_are_named() -> None:
    plan = plan_of({"id": "a", "tool": "area", "with": {"size": "${inputs.size}"}}, inputs={"size": "object"})
    async with stage(plan) as on:
        task = (await on.prompt({"size": "{}"}))["_meta"]
        assert task["pause_reason"] == {
            "type": "schemaMismatch",
            "blockedStep": "a",
            "missingFields": ["size.height", "size.width"],
            "suggestedTool": "area",
        }


@pytest.mark.req("EXEC-01", "EXEC-01.b")
async def test_the_server_carries_out_what_it_can_and_completes() -> None:
    async with stage() as on:
        meta = (await on.prompt({"source": "mirror"}))["_meta"]
        shown = await on.tasks.get(NEW, meta["task_id"])
        variables: dict[str, Any] = shown["_meta"]
        steps = await on.ask("GET", f"/v1/tasks/{meta['task_id']}/steps")
        for step in steps["items"]:
            kept = await on.ask("GET", f"/v1/tasks/{meta['task_id']}/steps/{step['id']}")
            assert variables[f"_workflow.result.{step['id']}"] == kept["output"]["value"]
        assert shown["result"]["structuredContent"] == {"completed": True, "steps_completed": 3}


@pytest.mark.req("HAND-02", "HAND-02.a")
async def test_what_is_said_to_models_and_programs_agrees() -> None:
    async with stage() as on:
        begun = await on.prompt()
        task = begun["_meta"]["task_id"]
        internal = (await on.all_tasks())[0]["id"]
        packet = await on.ask("GET", f"/v1/tasks/{task}/handoff")
        texts = [one["content"]["text"] for one in begun["messages"]]
        assert not [text for text in texts if task in text or internal in text]
        assert packet["pause_reason"] == begun["_meta"]["pause_reason"]
        assert calls(texts[-1]) == [one["tool"] for one in packet["remaining"]]
