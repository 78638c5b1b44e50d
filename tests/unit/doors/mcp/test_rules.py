"""The defects of the original design, as rules: one test each."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstep import EverstepError, PlanError
from everstep.domain.events import StepCompleted, TaskCompleted, TaskCreated
from everstep.doors.mcp.channel import Caller
from everstep.doors.mcp.desk import DoorDesk, DoorLimits
from everstep.doors.mcp.prompts import values_of
from everstep.doors.mcp.published import Book, Published
from everstep.doors.mcp.refusals import Refused
from tests.unit.doors.mcp.stage import CALLER, NEW, OLD, pipeline, plan_of, stage


async def refused(work: Any) -> Refused:
    with pytest.raises(Refused) as error:
        await work
    return error.value


TOPIC = {"topic": "string"}


def calls(handoff: str) -> list[str]:
    """The tools that a hand-off names."""
    return re.findall(r"^\d+\. Call (\w+) with", handoff, re.MULTILINE)


def reason(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["_meta"]["pause_reason"]
    return found


@pytest.mark.req("EXEC-04.a")
async def test_R01_the_argument_that_failed_is_named() -> None:
    plan = plan_of(
        {"id": "a", "tool": "say", "with": {"text": "fine", "more": "${inputs.gone}"}}, inputs={"gone": "string"}
    )
    async with stage(plan) as on:
        assert reason(await on.prompt({})) == {
            "type": "unresolvableParams",
            "blockedStep": "a",
            "missingParam": "more",
            "suggestedTool": "say",
        }


GUIDE: dict[str, Any] = {
    "id": "guide",
    "resources": [{"uri": "docs://guides/{topic}", "vars": {"topic": "${inputs.topic}"}}],
    "guidance": "Read about ${inputs.topic}",
}


@pytest.mark.req("EXEC-02.g", "EXEC-03.a")
async def test_R02_a_resource_failure_is_handed_over() -> None:
    plan = plan_of({**GUIDE, "retryable": True}, {"id": "b", "tool": "say", "with": {"text": "x"}}, inputs=TOPIC)
    async with stage(plan) as on:
        told = await on.prompt({"topic": "none"})
        assert reason(told) == {
            "type": "toolError",
            "failedStep": "guide",
            "error": "there is no such guide",
            "retryable": False,
            "suggestedTool": "resource_read",
        }
        texts = [one["content"]["text"] for one in told["messages"]]
        assert texts[2:4] == [
            "Read about none",
            "Error fetching resource docs://guides/none: there is no such guide",
        ]
        assert texts[-1].startswith("Step 'guide' failed: there is no such guide.\n\nTo continue")
        assert calls(texts[-1]) == ["say"]


@pytest.mark.req("EXEC-01.b")
async def test_R03_a_resource_failure_after_the_last_call_does_not_complete() -> None:
    """And a retry repeats the read, not the call."""
    plan = plan_of({"id": "a", "tool": "say", "with": {"text": "x"}}, {**GUIDE, "guidance": "g"}, inputs=TOPIC)
    async with stage(plan) as on:
        told = await on.prompt({"topic": "none"})
        assert told["_meta"]["task_status"] == "input_required"
        assert [one["status"] for one in told["_meta"]["steps"]] == ["completed", "failed"]
        (pause,) = (await on.ask("GET", "/v1/inbox"))["items"]
        await on.ask("POST", f"/v1/inbox/{pause['id']}/answer", {"answer": "retry"})
        while len(on.work.calls) < 3:
            await on.engine.clock.advance("1s")
        assert on.work.calls == ["say x", "guide none", "guide none"]


async def test_R14_steps_that_only_read_are_listed_as_resource_read() -> None:
    plan = plan_of(
        {"id": "a", "tool": "say", "with": {"text": "${inputs.gone}"}}, GUIDE, inputs={**TOPIC, "gone": "string"}
    )
    async with stage(plan) as on:
        texts = await on.texts({"topic": "tea & more"})
        assert texts[1] == "Here's my plan:\n1. say - Say it again\n2. guide - Fetch 1 resource\n"
        assert calls(texts[-1]) == ["say", "resource_read"]
        assert '{"uris":["docs://guides/tea%20%26%20more"]}' in texts[-1]
        task = (await on.prompt({"topic": "tea & more"}))["_meta"]["task_id"]
        read = await on.call("resource_read", task, uris=["docs://guides/tea%20%26%20more"])
        assert read["structuredContent"]["contents"][0]["text"] == "All about tea & more."
    async with stage(plan_of(GUIDE, inputs=TOPIC)) as on:
        texts = await on.texts({"topic": "tea & more"})
        assert texts[2:] == [
            "Read about tea & more",
            "Resource content from docs://guides/tea%20%26%20more:\nAll about tea & more.",
            "I'll fetch the required resources for guide...",
        ]


async def test_a_resource_that_nothing_serves_is_refused_before_a_task_exists() -> None:
    async with stage(plan_of({"id": "a", "resources": ["dcos://x"]})) as on:
        with pytest.raises(EverstepError) as info:
            await on.prompt({})
        details: Any = info.value.details
        (problem,) = details["problems"]
        assert (problem["code"], problem["suggestion"]) == ("plan.unknown_resource", "docs")
        assert await on.all_tasks() == []


async def test_R04_a_cancelled_request_keeps_what_ran() -> None:
    async with stage() as on:
        on.work.hold = asyncio.Event()
        asking = asyncio.ensure_future(on.prompt({"source": "mirror"}))
        await on.work.called.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.gather(*on.prompts.left)
        on.work.hold.set()
        (task,) = await on.all_tasks()
        async for event in on.engine.desk.events(task["id"], 1, follow=True):  # type: ignore[arg-type]
            if event.type == "task.paused":
                break
        shown = await on.ask("GET", f"/v1/tasks/{task['id']}")
        assert shown["pause"]["reason"] == {
            "type": "userRequested",
            "by": "client",
            "note": "request cancelled at step fetch",
        }
        assert shown["steps"][0]["status"] == "completed"
        await on.ask("POST", f"/v1/tasks/{task['id']}/resume", {})
        assert (await on.engine.get(task["id"])).id == task["id"]
        result = await on.call("get_task", task["id"], wait_s=5)
        assert result["structuredContent"]["outcome"] == "success"


async def test_R05_an_unknown_tool_leaves_no_task() -> None:
    async with stage(plan_of({"id": "a", "tool": "nowhere"})) as on:
        assert (await refused(on.prompt({}))).code == -32602
        assert await on.all_tasks() == []


@pytest.mark.req("Dep.2")
async def test_a_plan_that_a_model_wrote_is_refused_with_all_that_is_wrong() -> None:
    bad = {"name": "p", "steps": [{"id": "a", "tool": "sya", "with": {"text": "x"}, "retries": 1}]}
    good = {"name": "p", "steps": [{"id": "a", "tool": "say", "with": {"text": "x"}}]}
    async with stage() as on:
        told = await on.call("run_plan", plan=bad)
        problems = told["structuredContent"]["error"]["details"]["problems"]
        assert {(one["code"], one["suggestion"]) for one in problems} == {
            ("plan.unknown_tool", "say"),
            ("plan.unknown_key", "retry"),
        }
        assert await on.all_tasks() == []
        assert not (await on.call("run_plan", plan=good, wait_s=5)).get("isError")


async def test_R06_a_long_result_is_cut_alone() -> None:
    plan = plan_of(
        {"id": "small", "tool": "say", "with": {"text": "hi"}},
        {"id": "large", "tool": "big.thing", "with": {"size": 70000}},
        {"id": "stop", "tool": "fetch_data", "with": {"source": "a"}, "retry": 0},
    )
    async with stage(plan) as on:
        task = (await on.prompt({}))["_meta"]["task_id"]
        variables = (await on.tasks.get(NEW, task))["_meta"]
        assert variables["_workflow.result.small"] == {"said": "hi", "more": ""}
        assert variables["_workflow.result.large"]["truncated"] is True
        uri = variables["_workflow.result.large"]["uri"]
        assert uri == f"task://{task}/steps/large/output"


async def test_R07_results_are_raw_whoever_made_them() -> None:
    async with stage() as on:
        task = (await on.prompt({"source": "mirror"}))["_meta"]["task_id"]
        by_server = (await on.tasks.get(NEW, task))["_meta"]["_workflow.result.fetch"]
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        await on.call("fetch_data", task, source="mirror")
        assert (await on.tasks.get(NEW, task))["_meta"]["_workflow.result.fetch"] == by_server == {"lines": ["a,1"]}


async def test_R09_sixteen_at_once_do_not_exceed_the_bound() -> None:
    async with stage(config={"limits": {"live_tasks": 3}}) as on:
        made = await asyncio.gather(*(on.prompt() for _ in range(16)), return_exceptions=True)
        kept = [one for one in made if isinstance(one, dict)]
        assert len(kept) == 3
        assert {one.data["code"] for one in made if isinstance(one, Refused) and one.data} == {"too_many_tasks"}
        await on.calls.call(NEW, "cancel_task", {"task": kept[0]["_meta"]["task_id"]}, {})
        assert "_meta" in await on.prompt()  # only live ones count


async def test_R10_an_unknown_cursor_is_refused() -> None:
    async with stage() as on:
        cursors: list[Any] = ["nonsense", 7, ["a"], {}]
        for cursor in cursors:
            assert (await refused(on.tasks.page(OLD, cursor))).code == -32602


@pytest.mark.req("CONT-03")
async def test_R11_each_refusal_has_its_code() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        eve = replace(NEW, caller=Caller(owner="eve"))
        for work in (
            on.tasks.get(NEW, "mt_" + "x" * 32),
            on.tasks.get(NEW, None),
            on.tasks.get(eve, task),
            on.call("fetch_data", task, eve, source="mirror"),
            on.prompts.get(NEW, "nothing", {}, on.tell),
            on.prompts.get(NEW, "data-pipeline", {"wrong": "1"}, on.tell),
            on.call("nothing"),
            on.resources.read(NEW, "task://mt_none"),
        ):
            assert (await refused(work)).code == -32602
        assert (await refused(on.resources.read(OLD, "task://mt_none"))).code == -32002
        unknown = await refused(on.tasks.get(NEW, "mt_" + "x" * 32))
        foreign = await refused(on.tasks.get(eve, task))
        assert (unknown.code, unknown.message, unknown.data) == (foreign.code, foreign.message, foreign.data)


async def test_R12_what_was_put_in_is_not_looked_at_again() -> None:
    plan = plan_of(
        {"id": "a", "tool": "say", "with": {"text": "${inputs.x}"}, "guidance": "Say ${inputs.x} and {y}."},
        inputs={"x": "string"},
    )
    async with stage(plan) as on:
        texts = await on.texts({"x": "${inputs.secret} {x}"})
        assert texts[2] == "Say ${inputs.secret} {x} and {y}."
        assert on.work.calls == ["say ${inputs.secret} {x}"]


async def test_R13_parameters_come_in_declared_order() -> None:
    plan = plan_of({"id": "a", "tool": "say", "with": {"text": "x"}}, inputs={"b": "string", "a": "string"})
    async with stage(plan) as on:
        assert (await on.texts({"a": "1", "b": "2"}))[0].splitlines()[2:] == ['  - b: "2"', '  - a: "1"']


async def test_R15_guidance_is_told_and_a_broken_plan_refused() -> None:
    async with stage(pipeline(guidance="Be careful.")) as on:
        assert (await on.texts())[2] == "Be careful."
    step = {"id": "a", "tool": "say", "with": {"text": "x"}}
    async with stage(plan_of(step, step)) as on:
        with pytest.raises(PlanError, match="already the id"):
            await on.desk.check_plans(CALLER)
    async with stage(plan_of()) as on:
        with pytest.raises(PlanError, match="no steps"):
            await on.desk.check_plans(CALLER)


@pytest.mark.req("EXEC-04", "EXEC-02", "EXEC-02.a")
async def test_R16_a_skipped_producer_is_an_unresolved_dependency() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        await on.call("answer_pause", task, answer="skip")
        await on.call("get_task", task, wait_s=5)
        variables = (await on.tasks.get(NEW, task))["_meta"]
        assert variables["_workflow.pause_reason"] == {
            "type": "unresolvedDependency",
            "blockedStep": "transform",
            "missingOutput": "raw_data",
            "producingStep": "fetch",
            "suggestedTool": "fetch_data",
        }


@pytest.mark.req("CONT-02")
async def test_R17_a_call_that_cannot_be_recorded_is_not_made() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        await on.call("cancel_task", task)
        before = list(on.work.calls)
        said = await on.call("fetch_data", task, source="mirror")
        assert said["isError"]
        assert said["structuredContent"]["error"]["code"] == "task_terminal"
        assert on.work.calls == before


@pytest.mark.req("CONT-02")
async def test_R18_a_failed_call_is_recorded() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        said = await on.call("fetch_data", task, source="other")
        assert said["isError"]
        events = (await on.call("get_events", task))["structuredContent"]["events"]
        types = [one["type"] for one in events]
        assert types.count("attempt.failed") == 2
        assert types[-3:] == ["pause.opened", "task.continued", "task.paused"]


@pytest.mark.req("CONT-01")
async def test_R19_replies_carry_meta() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        for source, status in (("other", "failed"), ("mirror", "completed")):
            meta = (await on.call("fetch_data", task, source=source))["_meta"]
            assert (meta["task_id"], meta["steps"][0]) == (task, {"name": "fetch", "status": status})


@pytest.mark.parametrize("mode", ["client", "server"])
async def test_R20_who_goes_on_is_agreed(mode: str) -> None:
    async with stage(continue_by=mode) as on:
        task = (await on.prompt())["_meta"]["task_id"]
        await on.call("fetch_data", task, source="mirror")
        shown = (await on.call("get_task", task, wait_s=5))["structuredContent"]
        assert shown["task_status"] == ("completed" if mode == "server" else "paused")
        assert ("transform" in on.work.calls) is (mode == "server")


async def test_R21_no_silent_fall_back_to_a_plain_prompt() -> None:
    async with stage(config={"limits": {"live_tasks": 1}}) as on:
        await on.prompt()
        error = await refused(on.prompt())
        assert (error.code, error.data) == (-32603, {"code": "too_many_tasks"})
    async with stage(config={"limits": {"live_tasks": 2}}, limits=DoorLimits(on_task_unavailable="plain")) as on:
        await on.prompt()
        await on.prompt()
        error = await refused(on.prompt())  # the plain one needs a place too
        assert error.data == {"code": "too_many_tasks"}


@pytest.mark.parametrize("text", ["NaN", "inf", "-inf", "Infinity", " 1", "1e999", "x", ""])
def test_R22_what_is_no_number_is_not_there(text: str) -> None:
    plan = plan_of({"id": "a", "tool": "say", "with": {"text": "x"}}, inputs={"n": "number"})
    assert values_of(Published(plan=plan.spec), {"n": text}) == {}


async def test_R23_complete_is_told_only_when_it_is() -> None:
    for support in (True, False):
        async with stage(task_support=support) as on:
            await on.prompt()
            assert on.progress == [(1, 3, "Step 1/3: fetch")]
            on.progress.clear()
            await on.prompt({"source": "mirror"})
            assert on.progress[-1] == (3, 3, "Workflow execution complete")
            assert (2, 3, "Step 2/3: transform") in on.progress


async def test_R24_the_result_is_flat_and_waited_for() -> None:
    async with stage() as on:
        on.work.hold = asyncio.Event()
        made = await on.calls.make_task(OLD, "fetch_data", {"source": "mirror"}, {"ttl": 60000})
        task = made["task"]["taskId"]
        waiting = asyncio.ensure_future(on.tasks.result(OLD, task, None))
        await on.work.called.wait()
        assert not waiting.done()
        on.work.hold.set()
        assert await waiting == {
            "content": [{"type": "text", "text": '{"lines":["a,1"]}'}],
            "structuredContent": {"lines": ["a,1"]},
            "isError": False,
            "_meta": {"io.modelcontextprotocol/related-task": {"taskId": task}},
        }


async def test_R25_a_tool_that_is_no_task_is_refused_as_one() -> None:
    async with stage() as on:
        error = await refused(on.calls.make_task(OLD, "get_task", {"task": "t"}, {}))
        assert error.code == -32601


async def test_R27_the_last_outcome_and_the_end_are_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as on:
        commits: list[set[type]] = []
        creations: list[type] = []
        real, create = on.engine.store.commit_steps, on.engine.store.create_tasks

        async def watched(units: Any) -> Any:
            commits.extend({type(draft.body) for draft in unit.drafts} for unit in units)
            return await real(units)

        async def creating(tasks: Any) -> Any:
            creations.extend(type(one.created.body) for one in tasks)
            return await create(tasks)

        monkeypatch.setattr(on.engine.store, "commit_steps", watched)
        monkeypatch.setattr(on.engine.store, "create_tasks", creating)
        await on.prompt({"source": "mirror"})
        assert creations == [TaskCreated]
        assert [one for one in commits if TaskCompleted in one] == [{StepCompleted, TaskCompleted}]


async def test_R28_owners_with_a_colon_stay_apart() -> None:
    async with stage() as on:
        ann, other = (replace(NEW, caller=Caller(owner=name)) for name in ("a:b", "a"))
        task = (await on.prompt(client=ann))["_meta"]["task_id"]
        assert (await on.tasks.get(ann, task))["taskId"] == task
        assert (await refused(on.tasks.get(other, task))).code == -32602
        assert (await on.tasks.page(replace(OLD, caller=Caller(owner="a")), None))["tasks"] == []


def test_R29_tools_that_come_later_are_seen() -> None:
    book = Book([Published(plan=pipeline().spec)])
    known = [{"name": "fetch_data"}]
    assert [*book.tools(known)] == ["fetch_data"]
    assert [*book.tools([*known, {"name": "store_data"}])] == ["fetch_data", "store_data"]


async def test_R30_a_call_that_is_no_step_clears_nothing() -> None:
    async with stage() as on:
        task = (await on.prompt())["_meta"]["task_id"]
        meta = (await on.call("say", task, text="hello"))["_meta"]
        assert meta["pause_reason"]["type"] == "toolError"
        await on.call("fetch_data", task, source="mirror")
        await on.call("fetch_data", task, source="mirror two")
        variables = (await on.tasks.get(NEW, task))["_meta"]
        assert variables["_workflow.extra.say"] == {"said": "hello", "more": ""}
        assert variables["_workflow.extra.fetch_data"] == variables["_workflow.result.fetch"] == {"lines": ["a,1"]}


@pytest.mark.req("HAND-03.a")
async def test_R31_each_argument_has_its_own_placeholder() -> None:
    plan = plan_of(
        {"id": "fetch", "bind": "raw", "tool": "fetch_data", "with": {"source": "a"}, "retry": 0},
        {
            "id": "a",
            "tool": "say",
            "with": {"text": "${raw}", "more": "from ${inputs.gone}, ${raw.lines[0]} and ${inputs.here}"},
        },
        {"id": "b", "tool": "say", "with": {"text": "${inputs.here}", "more": "fixed"}},
        inputs={"here": "string", "gone": "string"},
    )
    async with stage(plan) as on:
        last = (await on.texts({"here": "H"}))[-1]
        assert last.splitlines()[-2:] == [
            (
                '1. Call say with {"text":"<output from raw>","more":"from <prompt arg gone>, '
                "<field 'lines.0' from raw> and H\"}"
            ),
            '2. Call say with {"text":"H","more":"fixed"}',
        ]


@pytest.mark.req("CONT-03.a")
@settings(max_examples=60, deadline=None)
@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.none()))
def test_R32_a_ttl_is_taken_or_refused_never_cut(wanted: Any) -> None:
    async def never(*_: Any) -> tuple[int, Any]:
        raise AssertionError

    desk = DoorDesk(never, Book([]), DoorLimits(), lambda: 0)  # type: ignore[arg-type]
    most = DoorLimits().max_ttl_ms
    good = wanted is None or (type(wanted) in (int, float) and 0 < wanted <= most)
    if good:
        assert 0 <= desk.ttl(wanted) <= most
    else:
        with pytest.raises(Refused) as error:
            desk.ttl(wanted)
        assert error.value.code == -32602
