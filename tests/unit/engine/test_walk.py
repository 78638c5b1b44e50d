"""The walk, on the real engine in virtual time: order, data, failure, waiting, crashing."""

import asyncio
import json

import pytest

from everstep.adapters.stores.memory import MemoryStore
from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.ids import Seq, StepPath, TaskId
from everstep.domain.lookup import STEP_FACTS
from everstep.domain.states import StepStatus
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import Ctx, Impossible, Misconfigured, NeedsInput, Transient
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, chain, echo, finish, plan_of


async def journal(task: Task) -> list[str]:
    """The types of a task's events, with their steps."""
    return [f"{event.type} {event.step}" if event.step else event.type async for event in task.events(follow=False)]


# --- order and data ---


async def test_steps_run_in_line_and_each_costs_two_events(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(chain("a", "b", "c"))
    result = await finish(engine, task)
    assert (result.status, result.outcome) == ("completed", "success")
    assert await journal(task) == [
        "task.created",
        "task.started",
        "attempt.started a",
        "step.completed a",
        "attempt.started b",
        "step.completed b",
        "attempt.started c",
        "step.completed c",
        "task.completed",
    ]
    assert result.outputs == {"last": {"value": {"value": {"value": 0}}}}


async def test_steps_without_needs_start_together_only_if_the_plan_says_so(tools: Tools) -> None:
    hold: list[JsonObject] = [
        {"id": f"s{n}", "tool": "test.hold", "with": {"label": f"s{n}"}, "needs": []} for n in range(3)
    ]
    for parallel, together in ((1, 1), (2, 2), (3, 3)):
        tools = Tools()
        async with TestEngine(tools.all()) as engine:
            task = await engine.start(plan_of(*hold, parallel=parallel))
            await engine.clock.advance("1ms")
            assert sum(tools.calls.values()) == together
            tools.release.set()
            assert (await finish(engine, task)).status == "completed"


async def test_a_false_condition_skips_and_what_needs_it_is_skipped_too(engine: TestEngine) -> None:
    plan = plan_of(
        echo("a", 1),
        echo("b", 2, when="${a.value == 2}"),
        echo("c", "${b.value}"),
        echo("d", 4),
        outputs={"d": "${d.value}"},
    )
    task = await engine.start(plan)
    result = await finish(engine, task)
    await task.refresh()
    statuses = {path: step.status.value for path, step in task.steps.items()}
    assert statuses == {"a": "completed", "b": "skipped", "c": "skipped", "d": "completed"}
    assert task.steps[StepPath("c")].upstream == "b"
    assert (result.outcome, [issue.step for issue in result.issues]) == ("partial", ["c"])


async def test_for_each_keeps_order_and_length(engine: TestEngine, tools: Tools) -> None:
    plan = plan_of(
        {
            "id": "each",
            "tool": "test.echo",
            "for_each": [3, 1, 2],
            "parallel": 2,
            "when": "${item != 1}",
            "with": {"value": "${item}", "label": "item"},
        },
        outputs={"all": "${each}"},
    )
    result = await finish(engine, await engine.start(plan))
    assert result.outputs == {"all": [{"value": 3}, None, {"value": 2}]}
    assert tools.calls["item"] == 2


async def test_whatever_the_check_knows_of_a_step_can_be_read(engine: TestEngine) -> None:
    """What `plan check` lets pass must not stop a task later."""
    told = STEP_FACTS["properties"]
    assert isinstance(told, dict)
    known = [*told]
    each: JsonObject = {"id": "each", "tool": "test.echo", "for_each": [1, 2], "with": {"value": "${item}"}}
    plan = plan_of(each, outputs={name: f"${{steps.each.{name}}}" for name in known})
    result = await finish(engine, await engine.start(plan))
    assert result.outputs is not None
    assert result.outputs.keys() == {*known}
    assert result.outputs["counts"] == {"total": 2, "completed": 2, "failed": 0, "skipped": 0}
    assert result.outcome == "success"


async def test_for_each_of_nothing_completes(engine: TestEngine) -> None:
    plan = plan_of({"id": "each", "tool": "test.echo", "for_each": [], "with": {}}, outputs={"all": "${each}"})
    assert (await finish(engine, await engine.start(plan))).outputs == {"all": []}


async def test_a_failing_item_fails_its_step_or_leaves_a_gap(tools: Tools) -> None:
    for on_error, status, outputs in (
        ("fail", "failed", None),
        ("continue", "completed", {"all": [{"value": 0}, None]}),
    ):
        tools = Tools()
        tools.raises["item1"] = [Impossible("no")]
        plan = plan_of(
            {
                "id": "each",
                "tool": "test.echo",
                "for_each": [0, 1],
                "on_error": on_error,
                "with": {"value": "${item}", "label": "item${item}"},
            },
            outputs={"all": "${each}"},
        )
        async with TestEngine(tools.all()) as engine:
            result = await finish(engine, await engine.start(plan))
            assert (result.status, result.outputs) == (status, outputs)


async def test_done_when_skips_the_optional_rest(engine: TestEngine, tools: Tools) -> None:
    plan = plan_of(echo("a", 1), echo("b", 2, on_error="continue"), echo("c", 3), done_when="${a.value == 1}")
    task = await engine.start(plan)
    result = await finish(engine, task)
    assert (result.outcome, tools.calls["b"], tools.calls["c"]) == ("success", 0, 1)


async def test_finally_runs_after_success_and_after_failure(tools: Tools) -> None:
    for broken in (False, True):
        tools = Tools()
        tools.raises["a"] = [Impossible("no") if broken else None]
        tidy: JsonValue = [echo("tidy", "${default(error.code, 'fine')}")]
        plan = plan_of(echo("a", 1), echo("b", 2), **{"finally": tidy})
        async with TestEngine(tools.all()) as engine:
            result = await finish(engine, await engine.start(plan))
            assert result.status == ("failed" if broken else "completed")
            assert (tools.calls["tidy"], tools.calls["b"]) == (1, 0 if broken else 1)


async def test_a_missing_output_is_null_and_an_issue(engine: TestEngine) -> None:
    plan = plan_of(echo("a", 1, when=False), echo("b", 2), outputs={"x": "${a.value}", "y": "${b.value}"})
    result = await finish(engine, await engine.start(plan))
    assert result.outputs == {"x": None, "y": 2}
    assert result.outcome == "partial"


@pytest.mark.req("C.1")
async def test_a_thousand_effects_each_have_an_earlier_intent() -> None:
    store, seen = MemoryStore(), set[tuple[str, str, int]]()

    @tool("look.back")
    async def look_back(*, ctx: Ctx) -> None:
        """Whether this very call was written down."""
        kept = await store.read_events(TaskId(ctx.task_id), Seq(0), 500)
        intents = [json.loads(one.encoded) for one in kept if one.type == "attempt.started"]
        if (ctx.step_id, ctx.attempt) in [(one["step"], one["data"]["attempt"]) for one in intents]:
            seen.add((ctx.task_id, ctx.step_id, ctx.attempt))

    async with TestEngine([look_back], store=store) as engine:
        steps: list[JsonValue] = [{"id": f"s{n}", "tool": "look.back"} for n in range(10)]
        tasks = [await engine.start(Plan.from_dict({"name": "p", "steps": steps})) for _ in range(100)]
        await asyncio.gather(*(task.result() for task in tasks))
    assert len(seen) == 1000


# --- failure ---


@pytest.mark.parametrize(("failures", "status", "calls"), [(1, "completed", 2), (3, "completed", 4), (9, "failed", 4)])
async def test_transient_failures_are_retried_three_times(
    engine: TestEngine, tools: Tools, failures: int, status: str, calls: int
) -> None:
    tools.raises["a"] = [*([Transient("later")] * failures), None]
    result = await finish(engine, await engine.start(chain("a")))
    assert (result.status, tools.calls["a"]) == (status, calls)


async def test_a_retry_waits_in_the_store_and_survives_a_crash(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [Transient("later", retry_after="20s"), None]
    task = await engine.start(chain("a"))
    await engine.clock.advance("5s")
    assert tools.calls["a"] == 1
    await engine.crash()
    await engine.clock.advance("14s")
    assert tools.calls["a"] == 1
    result = await finish(engine, await engine.get(task.id), "2s")
    assert (result.status, tools.calls["a"]) == ("completed", 2)


@pytest.mark.parametrize(
    ("on_error", "status", "outcome"),
    [("fail", "failed", None), ("continue", "completed", "partial"), ("pause", "paused", None)],
)
async def test_a_final_failure_means_what_the_plan_says(
    engine: TestEngine, tools: Tools, on_error: str, status: str, outcome: str | None
) -> None:
    tools.raises["a"] = [Misconfigured("bad host")]
    result = await finish(engine, await engine.start(plan_of(echo("a", on_error=on_error), echo("b"))))
    assert (result.status, result.outcome) == (status, outcome)
    assert tools.calls["b"] == (1 if on_error == "continue" else 0)


async def test_a_handed_over_failure_is_answered_with_better_arguments(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [Misconfigured("bad host")]
    task = await engine.start(plan_of(echo("a", 1, on_error="pause"), outputs={"a": "${a.value}"}))
    assert (await finish(engine, task)).status == "paused"
    pause = engine.inbox.only()
    assert (pause.type, pause.step) == ("toolError", "a")
    await pause.retry_with({"value": 7, "label": "other"})
    result = await finish(engine, await engine.get(task.id))
    assert (result.status, result.outputs) == ("completed", {"a": 7})


async def test_a_missing_field_is_asked_for(engine: TestEngine) -> None:
    task = await engine.start(plan_of(echo("a", {"x": 1}), echo("b", "${a.value.y}"), outputs={"b": "${b.value}"}))
    assert (await finish(engine, task)).status == "paused"
    pause = engine.inbox.only()
    assert pause.type == "unresolvableParams"
    await pause.supply_arguments({"value": "given"})
    assert (await finish(engine, await engine.get(task.id))).outputs == {"b": "given"}


async def test_a_result_that_is_not_json_is_the_tools_bug(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [KeyError("id")]
    result = await finish(engine, await engine.start(chain("a")))
    assert result.error is not None
    assert (result.error["code"], result.error["category"]) == ("tool_bug", "internal")


async def test_a_call_that_takes_too_long_is_cut_off(engine: TestEngine, tools: Tools) -> None:
    plan = plan_of({"id": "a", "tool": "test.hold", "timeout": "30s", "retry": 0, "with": {}})
    result = await finish(engine, await engine.start(plan), "31s")
    assert result.error is not None
    assert (result.status, result.error["code"]) == ("failed", "timeout")


async def test_a_question_is_asked_and_the_step_called_again_with_the_answer(engine: TestEngine) -> None:
    plan = plan_of({"id": "a", "tool": "ask", "with": {"question": "To whom?"}}, outputs={"to": "${a}"})
    task = await engine.start(plan)
    assert (await finish(engine, task)).status == "paused"
    pause = engine.inbox.only()
    assert (pause.type, pause.title) == ("inputRequired", "To whom?")
    await pause.answer("Ana")
    assert (await finish(engine, await engine.get(task.id))).outputs == {"to": "Ana"}


# --- waiting, pausing, cancelling ---


async def test_a_durable_wait_survives_a_crash_and_keeps_its_time(engine: TestEngine, tools: Tools) -> None:
    plan = plan_of({"id": "w", "tool": "wait", "with": {"for": "1m"}}, echo("a"))
    task = await engine.start(plan)
    await engine.clock.advance("30s")
    await engine.crash()
    await engine.clock.advance("29s")
    assert tools.calls["a"] == 0
    await engine.clock.advance("2s")
    task = await engine.get(task.id)
    assert (task.status, tools.calls["a"]) == ("completed", 1)
    assert (await journal(task)).count("attempt.started w") == 1


async def test_pause_takes_effect_after_the_call_and_resume_goes_on(engine: TestEngine, tools: Tools) -> None:
    plan = plan_of({"id": "a", "tool": "test.hold", "with": {}}, echo("b"))
    task = await engine.start(plan)
    await engine.clock.advance("1ms")
    assert (await task.pause()).status == "pausing"
    tools.release.set()
    await engine.clock.advance("1ms")
    assert ((await task.refresh()).status, tools.calls["b"]) == ("paused", 0)
    await engine.crash()
    task = await engine.get(task.id)
    assert (task.status, tools.calls["b"]) == ("paused", 0)
    await task.resume()
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls == {"hold": 1, "b": 1}


async def test_resume_before_the_pause_took_effect(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "a", "tool": "test.hold", "with": {}}, echo("b")))
    await engine.clock.advance("1ms")
    await task.pause()
    await task.resume()
    tools.release.set()
    assert (await finish(engine, task)).status == "completed"
    types = await journal(task)
    assert types[types.index("task.paused") + 1] == "task.resumed"


async def test_cancel_ends_the_call_and_skips_the_rest(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "a", "tool": "test.once", "with": {}}, echo("b")))
    await engine.clock.advance("1ms")
    assert (await task.cancel()).status == "cancelling"
    result = await finish(engine, task)
    assert (result.status, tools.calls["b"]) == ("cancelled", 0)
    assert [(issue.step, issue.status) for issue in result.issues] == [("a", "uncertain")]


async def test_a_cancelled_task_runs_its_finally_steps(engine: TestEngine, tools: Tools) -> None:
    tidy: list[JsonValue] = [echo("tidy")]
    task = await engine.start(plan_of({"id": "a", "tool": "test.once", "with": {}}, **{"finally": tidy}))
    await engine.clock.advance("1ms")
    await task.cancel()
    assert (await finish(engine, task)).status == "cancelled"
    assert tools.calls["tidy"] == 1
    ends = [line for line in await journal(task) if line.endswith(" tidy")]
    assert ends == ["attempt.started tidy", "step.completed tidy"]


async def test_cancel_before_the_claim_is_at_once(tools: Tools) -> None:
    async with TestEngine(tools.all(), config={"engine.tasks": 1}) as engine:
        await engine.start(plan_of({"id": "a", "tool": "test.hold", "with": {}}))
        waiting = await engine.start(chain("x"))
        await engine.clock.advance("1ms")
        assert (await waiting.cancel()).status == "cancelled"
        tools.release.set()
        await engine.clock.advance("1ms")
        assert tools.calls["x"] == 0


# --- crashing ---


@pytest.mark.req("WF-3")
async def test_the_store_is_the_state_between_any_two_steps(engine: TestEngine, tools: Tools) -> None:
    steps: list[JsonObject] = [{"id": f"s{n}", "tool": "test.hold", "with": {"label": f"s{n}"}} for n in range(4)]
    task = await engine.start(plan_of(*steps))
    for n in range(4):
        await engine.clock.advance("1ms")
        assert tools.calls[f"s{n}"] == 1
        tools.release.set()
        await engine.clock.advance("1ms")
        tools.release.clear()
        await engine.crash()
        task = await engine.get(task.id)
        assert task.steps[StepPath(f"s{n}")].status is StepStatus.COMPLETED


@pytest.mark.req("WF-7", "WF-16")
@pytest.mark.parametrize("down", ["1s", "10s", "40s"])
async def test_however_long_the_engine_was_down_its_tasks_are_found(
    engine: TestEngine, tools: Tools, down: str
) -> None:
    task = await engine.start(plan_of({"id": "a", "tool": "test.hold", "with": {}}))
    await engine.clock.advance("1ms")
    await engine.crash(down=down)
    tools.release.set()
    assert (await finish(engine, await engine.get(task.id))).status == "completed"
    types = await journal(task_again := await engine.get(task.id))
    assert types.count("task.recovered") == 1
    assert task_again.status == "completed"


async def test_a_once_call_that_was_cut_off_is_asked_about_and_never_repeated(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "a", "tool": "test.once", "with": {}}, echo("b")))
    await engine.clock.advance("1ms")
    await engine.crash()
    await engine.clock.advance("1ms")
    pause = engine.inbox.only()
    assert (pause.type, tools.calls["once"]) == ("uncertainOutcome", 1)
    await pause.happened({"label": "once"})
    assert (await finish(engine, await engine.get(task.id))).status == "completed"
    assert tools.calls == {"once": 1, "b": 1}


async def test_a_pure_call_that_was_cut_off_is_made_again_with_the_same_key(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "a", "tool": "test.hold", "with": {}}))
    await engine.clock.advance("1ms")
    await engine.crash()
    tools.release.set()
    result = await finish(engine, await engine.get(task.id))
    assert (result.status, tools.calls["hold"]) == ("completed", 2)
    keys = {
        event.data["idempotency_key"] async for event in task.events(follow=False) if event.type == "attempt.started"
    }
    assert len(keys) == 1


@pytest.mark.req("WF-27")
async def test_a_task_that_kills_its_worker_is_stopped(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "a", "tool": "test.hold", "with": {}}))
    for _ in range(6):
        await engine.clock.advance("1ms")
        await engine.crash()
    task = await engine.get(task.id)
    assert task.error is not None
    assert (task.status, task.error["code"], tools.calls["hold"]) == ("failed", "recovery_exhausted", 6)


async def test_a_planned_stop_is_no_recovery(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "w", "tool": "wait", "with": {"for": "1h"}}))
    for _ in range(9):
        await engine.clock.advance("1ms")
        await engine.close()
        await engine.open()
    await engine.clock.advance("1h")
    assert (await engine.get(task.id)).status == "completed"


async def test_needs_input_is_a_word_of_every_tool(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [NeedsInput("Which one?", {"type": "integer"}), None]
    task = await engine.start(chain("a"))
    assert (await finish(engine, task)).status == "paused"
    pause = engine.inbox.only()
    await pause.answer(3)
    assert (await finish(engine, await engine.get(task.id))).status == "completed"
