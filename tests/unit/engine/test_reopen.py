"""Retry and fork, on the real engine in virtual time: what stands is never called again, what is done anew is."""

import asyncio

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.errors import Conflict, Validation
from everstep.domain.ids import StepPath
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import Impossible, Misconfigured
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, chain, echo, final, finish, plan_of


def once(id: str, **keys: JsonValue) -> JsonObject:
    return {"id": id, "tool": "test.once", "with": {"label": id}, **keys}


async def failed(engine: TestEngine, tools: Tools, plan: Plan, step: str) -> Task:
    """A task whose `step` failed once and would succeed the next time."""
    tools.raises[step] = [Misconfigured("no"), None]
    task = await engine.start(plan)
    assert (await finish(engine, task)).status == "failed"
    return await task.refresh()


# --- retry ---


async def test_a_retry_begins_at_the_first_failed_step_and_keeps_the_others(engine: TestEngine, tools: Tools) -> None:
    task = await failed(engine, tools, chain("a", "b", "c"), "b")
    assert await task.retry(dry_run=True) == {"kept": ["a"], "again": ["b", "c"], "repeats": []}
    await task.retry(note="once more")
    result = await finish(engine, task)
    assert result.status == "completed"
    assert tools.calls == {"a": 1, "b": 2, "c": 1}
    (reopened,) = [event async for event in task.events(follow=False) if event.type == "task.reopened"]
    assert (reopened.generation, reopened.data) == (
        2,
        {
            "generation": 2,
            "from_step": "b",
            "kept": ["a"],
            "superseded": ["b", "c"],
            "arguments": {},
            "note": "once more",
        },
    )


async def test_attempts_and_keys_count_on_over_generations(engine: TestEngine, tools: Tools) -> None:
    task = await failed(engine, tools, chain("a", "b"), "b")
    await task.retry()
    await finish(engine, task)
    started = [e.data async for e in task.events(follow=False) if e.type == "attempt.started" and e.step == "b"]
    assert [data["attempt"] for data in started] == [1, 2]
    assert len({str(data["idempotency_key"]) for data in started}) == 2


async def test_a_completed_task_can_be_done_again_from_any_step(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(chain("a", "b", "c"))
    await finish(engine, task)
    with pytest.raises(Validation, match="no step failed"):
        await task.retry()
    await task.retry("c")
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls == {"a": 1, "b": 1, "c": 2}


async def test_other_arguments_are_checked_and_used(engine: TestEngine, tools: Tools) -> None:
    task = await failed(engine, tools, chain("a", "b"), "b")
    with pytest.raises(Validation, match="b/label"):
        await task.retry(arguments={"b": {"label": 7}})
    with pytest.raises(Validation, match="is kept"):
        await task.retry(arguments={"a": {"value": 7}})
    with pytest.raises(Validation, match="did you mean"):
        await task.retry(arguments={"bb": {"value": 7}})
    await task.retry(arguments={"b": {"value": "other"}})
    assert (await finish(engine, task)).outputs == {"last": {"value": "other"}}


async def test_an_effect_is_repeated_only_if_somebody_says_so(engine: TestEngine, tools: Tools) -> None:
    tools.release.set()
    task = await engine.start(plan_of(echo("a"), once("b"), echo("c")))
    await finish(engine, task)
    with pytest.raises(Conflict) as refused:
        await task.retry("a")
    assert refused.value.code == "effects_would_repeat"
    assert refused.value.details == {"repeats": [{"step": "b", "tool": "test.once", "effect": "once"}]}
    assert tools.calls["b"] == 1
    await task.retry("a", confirm_effects=True)
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls["b"] == 2


async def test_a_failure_that_may_have_acted_counts_as_an_effect(engine: TestEngine, tools: Tools) -> None:
    tools.raises["b"] = [Impossible("half done", effect_state="made")]
    task = await engine.start(plan_of(once("b")))
    assert (await finish(engine, task)).status == "failed"
    with pytest.raises(Conflict, match="would be made again"):
        await task.retry()


async def test_only_completed_and_failed_tasks_are_retried(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "h", "tool": "test.hold"}))
    await tools.holding.wait()
    with pytest.raises(Conflict, match="cannot retry a task that is running"):
        await task.retry("h")
    await task.cancel()
    await finish(engine, task)
    with pytest.raises(Conflict, match="cancelled"):
        await task.retry("h")


async def test_of_a_list_only_what_did_not_complete_is_done_again(engine: TestEngine, tools: Tools) -> None:
    tools.raises["i1"] = [Misconfigured("no"), None]
    each: JsonObject = {
        "id": "each",
        "tool": "test.echo",
        "for_each": ["i0", "i1", "i2", "i3"],
        "with": {"label": "${item}", "value": "${item}"},
        "parallel": 1,
    }
    task = await engine.start(plan_of(each, outputs={"all": "${each}"}))
    assert (await finish(engine, task)).status == "failed"
    assert tools.calls == {"i0": 1, "i1": 1}
    assert await task.retry(dry_run=True) == {"kept": ["each"], "again": ["each"], "repeats": []}
    await task.retry()
    result = await finish(engine, task)
    assert result.outputs == {"all": [{"value": f"i{n}"} for n in range(4)]}
    assert tools.calls == {"i0": 1, "i1": 2, "i2": 1, "i3": 1}


async def test_a_list_with_other_arguments_is_done_again_as_a_whole(engine: TestEngine, tools: Tools) -> None:
    tools.raises["i1"] = [Misconfigured("no"), None]
    each: JsonObject = {
        "id": "each",
        "tool": "test.echo",
        "for_each": ["i0", "i1"],
        "with": {"label": "${item}", "value": 1},
    }
    task = await engine.start(plan_of(each, outputs={"all": "${each}"}))
    await finish(engine, task)
    await task.retry(arguments={"each": {"value": 2}})
    assert (await finish(engine, task)).outputs == {"all": [{"value": 2}, {"value": 2}]}
    assert tools.calls == {"i0": 2, "i1": 2}


async def test_finally_steps_run_again_with_every_generation(engine: TestEngine, tools: Tools) -> None:
    task = await failed(engine, tools, plan_of(echo("a"), echo("b"), **final(echo("tidy"))), "b")
    await task.retry()
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls == {"a": 1, "b": 2, "tidy": 2}


async def test_two_critical_failures_are_both_done_again(engine: TestEngine, tools: Tools) -> None:
    tools.raises = {"a": [Misconfigured("no"), None], "b": [Misconfigured("no"), None]}
    plan = plan_of(echo("a", needs=[]), echo("b", needs=[]), echo("c"), parallel=2)
    task = await engine.start(plan)
    assert (await finish(engine, task)).status == "failed"
    await task.retry("a")
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls == {"a": 2, "b": 2, "c": 1}


async def test_a_storm_of_retries_opens_one_generation_each(engine: TestEngine, tools: Tools) -> None:
    tools.raises["b"] = [Misconfigured("never")]
    task = await engine.start(chain("a", "b"))
    await finish(engine, task)
    for wanted in range(2, 12):
        handles = [await engine.get(task.id) for _ in range(8)]
        done = await asyncio.gather(*(handle.retry() for handle in handles), return_exceptions=True)
        assert sum(isinstance(one, Conflict) for one in done) == 7, done
        await finish(engine, task)
        await task.refresh()
        assert (await engine.desk.get(task.id, engine.who)).generation == wanted
    assert tools.calls == {"a": 1, "b": 11}


async def test_a_retry_survives_a_crash_and_recoveries_begin_at_none(engine: TestEngine, tools: Tools) -> None:
    task = await failed(engine, tools, plan_of(echo("a"), echo("b"), {"id": "h", "tool": "test.hold"}), "b")
    await task.retry()
    await tools.holding.wait()
    await engine.crash()
    task = await engine.get(task.id)
    tools.release.set()
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls["a"] == 1


# --- fork ---


async def test_a_fork_begins_with_the_outcomes_of_the_other(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(chain("a", "b", "c"))
    await finish(engine, task)
    before = [event.seq async for event in task.events(follow=False)]
    forked = await task.fork("c", arguments={"c": {"value": "new"}}, note="what if")
    assert (await finish(engine, forked)).outputs == {"last": {"value": "new"}}
    assert tools.calls == {"a": 1, "b": 1, "c": 2}
    assert [forked.steps[StepPath(name)].via for name in ("a", "b")] == ["copied", "copied"]
    assert [event.seq async for event in task.events(follow=False)] == before, "the other task is not touched"
    created = await anext(aiter(forked.events()))
    assert created.data["parent"] == {"task": task.id, "step": "c", "link": "fork_of"}


async def test_a_fork_of_a_fork_copies_what_was_copied(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(chain("a", "b", "c"))
    await finish(engine, task)
    second = await (await task.fork("b")).refresh()
    await finish(engine, second)
    third = await second.fork("c")
    assert (await finish(engine, third)).status == "completed"
    assert tools.calls == {"a": 1, "b": 2, "c": 3}


async def test_a_copied_effect_counts_when_it_would_be_made_again(engine: TestEngine, tools: Tools) -> None:
    tools.release.set()
    task = await engine.start(plan_of(once("b"), echo("c")))
    await finish(engine, task)
    forked = await task.fork("c")
    await finish(engine, forked)
    with pytest.raises(Conflict, match="would be made again"):
        await forked.retry("b")


async def test_a_fork_takes_other_inputs(engine: TestEngine, tools: Tools) -> None:
    plan = plan_of(echo("a"), echo("b", "${inputs.n}"), inputs={"n": "integer"}, outputs={"n": "${b.value}"})
    task = await engine.start(plan, {"n": 1})
    await finish(engine, task)
    forked = await task.fork("b", {"n": 2})
    assert (await finish(engine, forked)).outputs == {"n": 2}
    with pytest.raises(Exception, match="inputs"):
        await task.fork("b", {"n": "two"})


async def test_a_step_in_flight_is_not_forked_away(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of(once("b"), echo("c")))
    await tools.holding.wait()
    with pytest.raises(Conflict) as refused:
        await task.fork("c")
    assert (refused.value.code, refused.value.details) == ("task_busy", {"step": "b"})
    forked = await task.fork("b")
    tools.release.set()
    assert (await finish(engine, forked)).status == "completed"
    assert (await finish(engine, task)).status == "completed"


async def test_a_cancelled_task_can_be_forked(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of(echo("a"), {"id": "h", "tool": "test.hold"}, echo("c")))
    await tools.holding.wait()
    await task.cancel()
    await finish(engine, task)
    tools.release.set()
    forked = await task.fork("h")
    assert (await finish(engine, forked)).status == "completed"
    assert tools.calls == {"a": 1, "hold": 2, "c": 1}


async def test_a_fork_keeps_completed_items_of_a_list(engine: TestEngine, tools: Tools) -> None:
    tools.raises["i1"] = [Misconfigured("no"), None]
    each: JsonObject = {
        "id": "each",
        "tool": "test.echo",
        "for_each": ["i0", "i1", "i2"],
        "with": {"label": "${item}", "value": "${item}"},
        "parallel": 3,
    }
    task = await engine.start(plan_of(each, outputs={"all": "${each}"}))
    assert (await finish(engine, task)).status == "failed"
    forked = await task.fork("each")
    assert (await finish(engine, forked)).outputs == {"all": [{"value": f"i{n}"} for n in range(3)]}
    assert tools.calls == {"i0": 1, "i1": 2, "i2": 1}


async def test_what_is_done_anew_is_asked_about_anew(engine: TestEngine, tools: Tools) -> None:
    """An approval covers one effect: neither a kept item nor an earlier generation lends its own."""
    tools.raises["i1"] = [Misconfigured("no"), None]
    each: JsonObject = {
        "id": "each",
        "tool": "test.echo",
        "for_each": ["i0", "i1"],
        "with": {"label": "${item}"},
        "approve": "All of them?",
    }
    task = await engine.start(plan_of(each))
    assert (await finish(engine, task)).status == "paused"
    await engine.inbox.only().approve()
    assert (await finish(engine, await task.refresh())).status == "failed"
    await task.refresh()
    await task.retry()
    assert (await finish(engine, task)).status == "paused"
    assert tools.calls == {"i0": 1, "i1": 1}
    await engine.inbox.only().approve()
    assert (await finish(engine, await task.refresh())).status == "completed"
    assert tools.calls == {"i0": 1, "i1": 2}
