"""Resources beside a call, as a conversation: read before it and after it; and who takes such a step over."""

from typing import Any

import pytest

from everstep import Plan
from tests.unit.doors.mcp.stage import NEW, plan_of, stage


def speaking(first: str, **keys: Any) -> Plan:
    """Read a guide, say something, read about what was said; then something else."""
    about = {"uri": "docs://guides/{topic}", "vars": {"topic": "${said.said}"}}
    step = {"id": "a", "bind": "said", "tool": "say", "with": {"text": "${inputs.text}"}, **keys}
    last = {"id": "b", "tool": "transform_data", "with": {"data": "${said}"}}
    resources = [f"docs://guides/{first}", about]
    return plan_of({**step, "resources": resources}, last, inputs={"text": "string"})


@pytest.mark.req("INTG-02", "FNDX-05")
@pytest.mark.parametrize("support", [True, False])
async def test_what_is_read_is_told_around_the_call(support: bool) -> None:
    """The same with and without a task behind it."""
    async with stage(speaking("house", guidance="Mind ${inputs.text}."), task_support=support) as on:
        told = (await on.prompt({"text": "tea"}))["messages"]
        assert [(one["role"], one["content"]["text"]) for one in told[2:7]] == [
            ("assistant", "Mind tea."),
            ("user", "Resource content from docs://guides/house:\nAll about house."),
            ("assistant", 'Calling tool \'say\' with parameters:\n{\n  "text": "tea"\n}'),
            ("user", 'Tool result:\n{\n  "more": "",\n  "said": "tea"\n}'),
            ("user", "Resource content from docs://guides/tea:\nAll about tea."),
        ]
        assert on.work.calls == ["guide house", "say tea", "guide tea", "transform"]


@pytest.mark.req("EXEC-02.g", "EXEC-03")
async def test_a_read_that_fails_before_the_call_hands_the_call_over() -> None:
    """The client goes on without what should have been read; the step is done with its call."""
    async with stage(speaking("none", retryable=True)) as on:
        told = await on.prompt({"text": "tea"})
        texts = [one["content"]["text"] for one in told["messages"]]
        assert texts[2] == "Error fetching resource docs://guides/none: there is no such guide"
        assert texts[3].splitlines() == [
            "Step 'a[before]' failed: there is no such guide. This step is retryable.",
            "",
            "To continue the workflow, make these tool calls:",
            "",
            '1. Call say with {"text":"tea"}',
            '2. Call transform_data with {"data":"<output from said>"}',
        ]
        assert len(texts) == 4
        assert told["_meta"]["pause_reason"] == {
            "type": "toolError",
            "failedStep": "a[before]",
            "error": "there is no such guide",
            "retryable": True,
            "suggestedTool": "say",
        }
        assert [one["status"] for one in told["_meta"]["steps"]] == ["failed", "pending"]
        task = told["_meta"]["task_id"]
        said = await on.call("say", task, text="tea")
        assert said["structuredContent"] == {"said": "tea", "more": ""}
        assert [one["status"] for one in said["_meta"]["steps"]] == ["completed", "pending"]
        shaped = await on.call("transform_data", task, data="<output from said>")
        assert [one["status"] for one in shaped["_meta"]["steps"]] == ["completed", "completed"]
        assert on.work.calls == ["guide none", "say tea", "transform"]
        await on.call("complete_task", task, result={"ok": True})
        (seen,) = await on.all_tasks()
        assert (seen["status"], seen["outcome"]) == ("completed", "success")


@pytest.mark.req("EXEC-01.b", "CONT-02")
async def test_a_read_that_fails_after_the_call_hands_only_the_read_over() -> None:
    """The call has been made: another of the same tool is another call, and the step takes only its read."""
    async with stage(speaking("house", retryable=True)) as on:
        told = await on.prompt({"text": "none"})
        assert told["_meta"]["task_status"] == "input_required"
        assert told["_meta"]["pause_reason"]["suggestedTool"] == "resource_read"
        assert '1. Call resource_read with {"uris":["docs://guides/none"]}\n' in told["messages"][-1]["content"]["text"]
        task = told["_meta"]["task_id"]
        again = await on.call("say", task, text="none")
        assert [one["status"] for one in again["_meta"]["steps"]] == ["failed", "pending"]
        read = await on.call("resource_read", task, uris=["docs://guides/tea"])
        assert [one["status"] for one in read["_meta"]["steps"]] == ["completed", "pending"]
        state = await on.tasks.get(NEW, task)
        assert state["_meta"]["_workflow.result.a"] == {"said": "none", "more": ""}
        assert state["_meta"]["_workflow.extra.say"] == {"said": "none", "more": ""}


@pytest.mark.req("CONT-02")
async def test_a_client_may_call_a_step_with_resources_before_its_turn() -> None:
    first = {"id": "f", "tool": "fetch_data", "with": {"source": "down"}, "retry": 0}
    plan = plan_of(first, {"id": "a", "tool": "say", "with": {"text": "x"}, "resources": ["docs://guides/house"]})
    async with stage(plan, continue_by="server") as on:
        task = (await on.prompt({}))["_meta"]["task_id"]
        said = await on.call("say", task, text="mine")
        assert [one["status"] for one in said["_meta"]["steps"]] == ["failed", "completed"]
        assert "guide house" not in on.work.calls


@pytest.mark.req("CONT-02")
async def test_a_client_fills_a_step_that_only_reads() -> None:
    plan = plan_of({"id": "g", "resources": ["docs://guides/none"], "retryable": True})
    async with stage(plan) as on:
        task = (await on.prompt({}))["_meta"]["task_id"]
        read = await on.call("resource_read", task, uris=["docs://guides/tea"])
        assert read["_meta"]["steps"] == [{"name": "g", "status": "completed"}]
