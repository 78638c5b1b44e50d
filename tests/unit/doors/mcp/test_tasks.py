"""Tasks on the wire: questions as forms, answers, what a poll says, who is told, how long a handle lasts."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from everstep.doors.mcp.bridge import MODERN, poll_ms, status_message
from everstep.doors.mcp.desk import DoorLimits
from everstep.doors.mcp.refusals import Refused
from tests.unit.doors.mcp.stage import NEW, OLD, Stage, plan_of, stage

ASKS = {"id": "store", "tool": "say", "with": {"text": "hi"}, "approve": {"title": "Say it?", "edit": ["text"]}}


async def begun(on: Stage) -> tuple[str, dict[str, Any]]:
    """The plan's task, and what a poll says."""
    task = (await on.prompt({}))["_meta"]["task_id"]
    return task, await on.tasks.get(NEW, task)


@pytest.mark.req("HAND-01")
async def test_an_approval_is_a_form_and_never_a_call() -> None:
    async with stage(plan_of(ASKS)) as on:
        said = (await on.prompt({}))["messages"][-1]["content"]["text"]
        assert said == (
            "Step 'store' needs approval before it runs.\n\nTo continue the workflow, make these tool calls:\n\n"
            '1. Call answer_pause with {"answer":"approve|edit|reject|answer"}\n'
            "   Note: The server goes on by itself after the answer.\n"
        )
        _, shown = await begun(on)
        assert (shown["status"], shown["statusMessage"]) == (
            "input_required",
            "Waiting for approval of step 'store'.",
        )
        ((key, form),) = shown["inputRequests"].items()
        assert key.startswith("p_")
        schema = form["params"]["requestedSchema"]
        assert schema["properties"]["answer"]["enum"] == ["approve", "edit", "reject", "answer"]
        assert schema["properties"]["text"] == {"type": "string"}
        assert on.work.calls == []


async def test_an_answer_in_the_form_lets_it_go_on() -> None:
    async with stage(plan_of(ASKS)) as on:
        task, shown = await begun(on)
        (key,) = shown["inputRequests"]
        responses = {key: {"action": "accept", "content": {"answer": "edit", "text": "hello"}}, "p_unknown": {}}
        assert await on.tasks.update(NEW, task, responses) == {}
        await on.call("get_task", task, wait_s=5)
        assert on.work.calls == ["say hello"]
        events = (await on.call("get_events", task))["structuredContent"]["events"]
        (answered,) = [one for one in events if one["type"] == "pause.answered"]
        assert (answered["actor"]["kind"], answered["actor"]["via"]) == ("human", "mcp")


async def test_a_tool_call_is_never_a_person() -> None:
    async with stage(plan_of(ASKS)) as on:
        task, _ = await begun(on)
        said = await on.call("answer_pause", task, answer="approve")
        assert said["structuredContent"]["error"]["code"] == "answer_not_allowed"
        never = replace(on.desk.limits, trust_elicitation="never")
        on.desk.limits = never
        assert "inputRequests" not in await on.tasks.get(NEW, task)
        assert (await on.tasks.get(NEW, task))["status"] == "working"


async def test_declining_an_approval_rejects_it() -> None:
    async with stage(plan_of(ASKS)) as on:
        task, shown = await begun(on)
        (key,) = shown["inputRequests"]
        await on.tasks.update(NEW, task, {key: {"action": "decline"}})
        await on.call("get_task", task, wait_s=5)
        events = (await on.call("get_events", task))["structuredContent"]["events"]
        (answered,) = [one for one in events if one["type"] == "pause.answered"]
        assert (answered["data"]["answer"], answered["data"]["note"]) == ("reject", "declined")
        assert on.work.calls == []


async def test_other_questions_that_are_put_aside_stay_open_elsewhere() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        (key,) = (await on.tasks.get(NEW, task))["inputRequests"]
        await on.tasks.update(NEW, task, {key: {"action": "cancel"}})
        shown = await on.tasks.get(NEW, task)
        assert shown["status"] == "working"
        assert "inputRequests" not in shown
        assert len((await on.ask("GET", "/v1/inbox"))["items"]) == 1


async def test_a_bad_answer_is_asked_again_under_another_key() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        (key,) = (await on.tasks.get(NEW, task))["inputRequests"]
        wrong = {"action": "accept", "content": {"answer": "supply_output", "output_json": "{"}}
        await on.tasks.update(NEW, task, {key: wrong})
        ((again, form),) = (await on.tasks.get(NEW, task))["inputRequests"].items()
        assert again == f"{key}.2"
        assert "no JSON" in form["params"]["message"]
        good = {"action": "accept", "content": {"answer": "supply_output", "output_json": '{"lines": []}'}}
        await on.tasks.update(NEW, task, {key: good})  # an old key is passed over
        assert again in (await on.tasks.get(NEW, task))["inputRequests"]
        await on.tasks.update(NEW, task, {again: good})
        shown = (await on.call("get_task", task, wait_s=5))["structuredContent"]
        assert shown["outcome"] == "success"


async def test_the_older_revision_asks_on_the_open_request() -> None:
    async with stage(plan_of(ASKS)) as on:
        task, _ = await begun(on)
        asked: list[str] = []

        async def elicit(message: str, schema: dict[str, Any]) -> dict[str, Any]:
            asked.append(message)
            return {"action": "accept", "content": {"answer": "approve"}}

        result = await on.tasks.result(OLD, task, elicit)
        assert result["structuredContent"] == {"completed": True, "steps_completed": 1}
        assert asked[0].startswith("Step 'store' needs approval before it runs.")


@pytest.mark.req("CONT-03")
async def test_every_change_is_told_until_the_end() -> None:
    async with stage() as on:
        on.work.hold = asyncio.Event()
        made = await on.calls.call(NEW, "fetch_data", {"source": "mirror"}, {})
        assert made["resultType"] == "task"
        told: list[str] = []

        async def listen() -> None:
            told.extend([change["status"] async for change in on.tasks.changes(NEW, made["taskId"])])

        listening = asyncio.ensure_future(listen())
        await on.work.called.wait()
        on.work.hold.set()
        await listening
        assert told[0] == "working"
        assert told[-1] == "completed"
        assert await on.tasks.known(NEW, [made["taskId"], "mt_none", 5]) == [made["taskId"]]


async def test_a_handle_lasts_while_its_task_is_open_and_a_while_longer() -> None:
    async with stage(limits=DoorLimits(ttl_ms=60_000)) as on:
        task = (await on.prompt())["_meta"]["task_id"]
        first = (await on.tasks.get(NEW, task))["ttlMs"]
        await on.engine.clock.advance("10m")
        assert (await on.tasks.get(NEW, task))["ttlMs"] == first + 600_000
        await on.tasks.cancel(NEW, {"taskId": task})
        await on.engine.clock.advance("59s")
        assert (await on.tasks.get(NEW, task))["status"] == "cancelled"
        await on.engine.clock.advance("2s")
        with pytest.raises(Refused, match="not found"):
            await on.tasks.get(NEW, task)
        assert len(await on.all_tasks()) == 1  # the task stays for the other doors


async def test_a_new_generation_has_a_new_handle_and_the_old_one_keeps_its_end() -> None:
    async with stage() as on:
        task = (await on.prompt({"source": "mirror"}))["_meta"]["task_id"]
        again = await on.call("retry_step", task, step="transform")
        assert again["_meta"]["task_id"] != task if "_meta" in again else True
        assert (await on.tasks.get(NEW, task))["status"] == "completed"


async def test_ending_twice_differs_by_revision() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        ended = await on.tasks.cancel(OLD, {"taskId": task})
        assert ended["status"] == "cancelled"
        assert await on.tasks.cancel(NEW, {"taskId": task}) == {}
        with pytest.raises(Refused) as refused:
            await on.tasks.cancel(OLD, {"taskId": task})
        assert refused.value.code == -32602
        assert (await on.tasks.result(OLD, task, None))["isError"]


async def test_a_call_that_takes_long_becomes_a_task_for_those_who_can_follow_it() -> None:
    async with stage(limits=DoorLimits(task_after_s=0.05)) as on:
        on.work.hold = asyncio.Event()
        made = await on.calls.call(NEW, "fetch_data", {"source": "mirror"}, {})
        assert made["resultType"] == "task"
        on.work.called.clear()
        waiting = asyncio.ensure_future(
            on.calls.call(replace(NEW, tasks=False), "fetch_data", {"source": "mirror"}, {})
        )
        await on.work.called.wait()
        assert not waiting.done()
        on.work.hold.set()
        assert (await waiting)["structuredContent"] == {"lines": ["a,1"]}


async def test_names_of_tasks_that_differ_are_refused() -> None:
    async with stage() as on:
        meta = {"_task_id": "mt_a", "everstep/task_id": "mt_b"}
        with pytest.raises(Refused) as refused:
            await on.calls.call(NEW, "fetch_data", {"source": "x"}, meta)
        assert refused.value.code == -32602
        assert NEW.era == MODERN


async def test_another_client_goes_on_from_the_prompt() -> None:
    async with stage() as on:
        first = await on.prompt()
        again = await on.prompts.get(OLD, "continue_task", {}, on.tell)
        assert again["messages"] == first["messages"]
        assert again["_meta"]["task_id"] == first["_meta"]["task_id"]
        packet = await on.resources.read(NEW, f"task://{first['_meta']['task_id']}/handoff")
        assert '"schema": "everstep.handoff/1"' in packet["contents"][0]["text"]
        task = first["_meta"]["task_id"]
        said = await on.call("continue_task", task, tool="fetch_data", arguments={"source": "mirror"})
        assert said["structuredContent"] == {"lines": ["a,1"]}


@pytest.mark.parametrize(
    ("estimate", "text", "poll"),
    [
        (None, "No estimate yet.", 1000),
        ({"p10": None, "p50": None, "p90": None}, "No estimate yet.", 1000),
        ({"p10": 20.0, "p50": 40.2, "p90": 120.0}, "About 40 s left (20 s to 2 min).", 5025),
        ({"p10": 0.1, "p50": 0.2, "p90": 0.3}, "About 1 s left (1 s to 1 s).", 500),
        ({"p10": 600.0, "p50": 7200.0, "p90": 9000.0}, "About 2 h left (10 min to 2 h).", 10000),
    ],
)
async def test_what_is_left_is_said_as_far_as_it_is_known(estimate: Any, text: str, poll: int) -> None:
    async with stage() as on:
        on.work.hold = asyncio.Event()
        made = await on.calls.make_task(OLD, "fetch_data", {"source": "mirror"}, {})
        story, view = await on.desk.held(OLD, made["task"]["taskId"])
        seen = replace(view, estimate=estimate)
        assert status_message(story.state, seen) == f"Step 1 of 1: call. {text}"
        assert poll_ms(story.state, seen) == poll
        on.work.hold.set()


async def test_answers_that_come_one_after_the_other_are_all_heard() -> None:
    """Between two answers the task may be at work: its other question is open all the same."""
    ask = {"tool": "ask", "needs": [], "with": {"question": "Well?", "schema": {"type": "boolean"}}}
    async with stage(plan_of({"id": "a", **ask}, {"id": "b", **ask}, parallel=2)) as on:
        task, shown = await begun(on)
        for key in shown["inputRequests"]:
            await on.tasks.update(NEW, task, {key: {"action": "accept", "content": {"value": True}}})
        assert (await on.call("get_task", task, wait_s=5))["structuredContent"]["outcome"] == "success"


async def test_a_retry_that_is_waited_for_is_said() -> None:
    plan = plan_of({"id": "fetch", "tool": "fetch_data", "with": {"source": "a"}, "retry": {"times": 3, "delay": "8s"}})
    async with stage(plan, limits=DoorLimits(prompt_wait_s=0.2)) as on:
        task = (await on.prompt({}))["_meta"]["task_id"]
        said = (await on.tasks.get(NEW, task))["statusMessage"]
        assert re.fullmatch(r"Step 1 of 1: fetch\. Retry 1 of 3 in [4-8] s\.", said)
