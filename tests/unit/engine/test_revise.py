"""Patches on the real engine: what has begun is never touched, and a walk under way takes the new plan up."""

import pytest

from everstep.domain.errors import Conflict, PlanError, Validation
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import Misconfigured
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, echo, finish, plan_of

HOLD: JsonObject = {"id": "h", "tool": "test.hold"}


async def under_way(engine: TestEngine, tools: Tools, *rest: JsonObject, **keys: JsonValue) -> Task:
    """A task whose first step is in flight."""
    task = await engine.start(plan_of(HOLD, *rest, **keys))
    await tools.holding.wait()
    return task


async def test_a_running_task_takes_its_new_plan_up(engine: TestEngine, tools: Tools) -> None:
    task = await under_way(engine, tools, echo("a", 1), echo("b", 2), outputs={"a": "${a.value}"})
    ops: list[JsonObject] = [
        {"op": "set", "id": "a", "with": {"value": "set"}},
        {"op": "replace", "id": "b", "step": echo("b", "${a.value}")},
        {"op": "append", "after": "a", "step": echo("mid", "${a.value}")},
        {"op": "append", "step": echo("last", "${b.value}")},
    ]
    tried = await task.patch(ops, 1, dry_run=True)
    assert (await engine.desk.get(task.id, engine.who)).revision == 1, "a question changes nothing"
    done = await task.patch(ops, 1, note="better")
    assert done == tried
    assert done["revision"] == 2
    tools.release.set()
    assert (await finish(engine, task)).outputs == {"a": "set"}
    await task.refresh()
    assert [name for name in tools.calls if name != "hold"] == ["a", "mid", "b", "last"]
    assert task.steps["last"].output.value == {"value": "set"}  # type: ignore[index, union-attr]


async def test_a_patch_survives_a_crash(engine: TestEngine, tools: Tools) -> None:
    task = await under_way(engine, tools, echo("a"))
    await task.patch([{"op": "append", "step": echo("z")}], 1)
    await engine.crash()
    tools.release.set()
    task = await engine.get(task.id)
    assert task.revision == 2
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls["z"] == 1


async def test_a_skipped_step_is_left_out(engine: TestEngine, tools: Tools) -> None:
    task = await under_way(engine, tools, echo("a"), echo("b"))
    await task.patch([{"op": "skip", "id": "a", "note": "not needed"}], 1)
    tools.release.set()
    assert (await finish(engine, task)).status == "completed"
    assert tools.calls == {"hold": 1, "b": 1}


@pytest.mark.parametrize(
    ("ops", "code"),
    [
        ([{"op": "set", "id": "h", "with": {"label": "x"}}], "patch.step_started"),
        ([{"op": "skip", "id": "h"}], "patch.step_started"),
        ([{"op": "replace", "id": "h", "step": HOLD}], "patch.step_started"),
        ([{"op": "replace", "id": "a", "step": {"id": "a", "tool": "test.once"}}], "patch.effect_raised"),
        ([{"op": "replace", "id": "a", "step": echo("other")}], "plan_invalid"),
        ([{"op": "skip", "id": "nobody"}], "plan_invalid"),
        ([{"op": "append", "step": echo("a")}], "plan_invalid"),
        ([{"op": "append", "step": {"id": "n", "tool": "no.tool"}}], "plan_invalid"),
        ([{"op": "append", "after": "nobody", "step": echo("n")}], "plan_invalid"),
        ([{"op": "set", "id": "a", "with": {"no_such": 1}}], "plan_invalid"),
        ([{"op": "set", "id": "a", "with": {"value": "${nothing.here}"}}], "plan_invalid"),
        ([{"op": "append", "step": echo("n")}, {"op": "skip", "id": "h"}], "patch.step_started"),
    ],
)
async def test_what_is_refused_changes_nothing(
    engine: TestEngine, tools: Tools, ops: list[JsonObject], code: str
) -> None:
    task = await under_way(engine, tools, echo("a"))
    before = (await engine.desk.get(task.id, engine.who)).seq
    with pytest.raises((Conflict, Validation, PlanError)) as refused:
        await task.patch(ops, 1)
    assert refused.value.code == code
    assert (await engine.desk.get(task.id, engine.who)).seq == before
    tools.release.set()
    assert (await finish(engine, task)).status == "completed"


async def test_ops_that_make_no_sense_are_all_named(engine: TestEngine, tools: Tools) -> None:
    task = await under_way(engine, tools, echo("a"))
    ops: list[JsonObject] = [{"op": "dance"}, {"op": "skip"}, {"op": "set", "id": "a", "wth": {}}]
    with pytest.raises(PlanError) as refused:
        await task.patch(ops, 1)
    assert len(refused.value.problems) == 4
    with pytest.raises(PlanError):
        await task.patch([], 1)
    tools.release.set()
    await finish(engine, task)


async def test_a_patch_for_another_revision_is_stale(engine: TestEngine, tools: Tools) -> None:
    task = await under_way(engine, tools, echo("a"))
    other = await engine.get(task.id)
    await task.patch([{"op": "append", "step": echo("x")}], 1)
    with pytest.raises(Conflict) as refused:
        await other.patch([{"op": "append", "step": echo("y")}], 1)
    assert (refused.value.code, refused.value.details) == ("patch.stale_revision", {"revision": 2})
    tools.release.set()
    await finish(engine, task)
    with pytest.raises(Conflict) as refused:
        await task.patch([{"op": "append", "step": echo("y")}], 2)
    assert refused.value.code == "task_terminal"


async def test_a_question_about_a_changed_call_is_asked_anew(engine: TestEngine, tools: Tools) -> None:
    tools.raises["a"] = [Misconfigured("no"), None]
    task = await engine.start(plan_of(echo("a", on_error="pause"), echo("b")))
    assert (await finish(engine, task)).status == "paused"
    await task.patch([{"op": "set", "id": "a", "with": {"value": "better"}}], 1)
    assert (await finish(engine, task)).status == "completed"
    assert engine.inbox.all == []
    withdrawn = [event.type async for event in task.events(follow=False) if event.type.startswith("pause.")]
    assert withdrawn == ["pause.opened", "pause.withdrawn"]


async def test_nobody_changes_a_call_whose_end_is_unknown(engine: TestEngine, tools: Tools) -> None:
    task = await engine.start(plan_of({"id": "o", "tool": "test.once"}, echo("b")))
    await tools.holding.wait()
    await engine.crash()
    await engine.clock.advance("1s")
    task = await engine.get(task.id)
    assert task.status == "paused"
    with pytest.raises(Conflict) as refused:
        await task.patch([{"op": "set", "id": "o", "with": {"label": "x"}}], 1)
    assert refused.value.code == "patch.step_started"
    await task.patch([{"op": "skip", "id": "o"}], 1)
    assert (await finish(engine, task)).status == "completed"


async def test_a_plan_too_long_for_its_event_can_be_changed(engine: TestEngine, tools: Tools) -> None:
    long = [echo(f"s{n}", "x" * 400) for n in range(80)]
    task = await under_way(engine, tools, *long)
    await task.patch([{"op": "skip", "id": "s1"}, {"op": "append", "step": echo("z")}], 1)
    tools.release.set()
    assert (await finish(engine, task)).status == "completed"
    assert (tools.calls["s1"], tools.calls["z"]) == (0, 1)
