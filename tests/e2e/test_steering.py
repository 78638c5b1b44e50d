"""What a person relies on when steps fail or tasks are held back: real engines on real files (acceptance 2 and 4)."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everstep import Engine, Impossible, Misconfigured, Plan, Task, tool
from everstep.domain.ids import StepPath
from everstep.domain.values import JsonObject, JsonValue
from everstep.errors import Conflict
from everstep.settings import load_settings
from tests.e2e.processes import World, kill, until
from tests.e2e.test_durability import query


class Calls:
    """Tools that count, fail or hold as told."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.held = asyncio.Event()
        self.release = asyncio.Event()

    def tools(self) -> list[object]:
        async def wait(label: str) -> str:
            self.made.append(label)
            self.held.set()
            await self.release.wait()
            return label

        @tool("calls.note", effect="pure")
        async def note(label: str, after: str = "") -> str:
            """Leave a mark."""
            self.made.append(label)
            return f"{after}{label}"

        @tool("calls.fail", effect="pure")
        async def fail(label: str = "") -> str:
            """Fail."""
            self.made.append(label)
            raise Misconfigured("there is no such thing")

        @tool("calls.contradict", effect="pure")
        async def contradict() -> str:
            """What cannot be."""
            raise Impossible("a folder cannot be moved into itself")

        @tool.pure("calls.hold")
        async def hold(label: str) -> str:
            """Wait."""
            return await wait(label)

        @tool("calls.hold_once")
        async def hold_once(label: str) -> str:
            """Wait, and must not be repeated."""
            return await wait(label)

        return [note, fail, contradict, hold, hold_once]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def engine(calls: Calls, tmp_path: Path) -> AsyncIterator[Engine]:
    async with Engine(tmp_path / "everstep.db", tools=calls.tools()) as opened:
        yield opened
        calls.release.set()


def step(id: str, name: str = "calls.note", **keys: JsonValue) -> JsonObject:
    return {"id": id, "tool": name, "with": {"label": id}, **keys}


def plan_of(*steps: JsonObject, **keys: JsonValue) -> Plan:
    return Plan.from_dict({"name": "p", "steps": list(steps), **keys})


async def ended(task: Task) -> dict[str, str]:
    """How each step stands once nothing moves any more."""
    await asyncio.wait_for(task.result(on_pause="return"), 60)
    await task.refresh()
    return {str(path): one.status.value for path, one in task.steps.items()}


# --- a failing step ---


@pytest.mark.req("2.1")
@pytest.mark.parametrize(
    ("on_error", "status", "outcome"),
    [("fail", "failed", None), ("continue", "completed", "partial"), ("pause", "paused", None)],
)
async def test_a_failure_is_critical_only_where_the_plan_says_so(
    engine: Engine, on_error: str, status: str, outcome: str | None
) -> None:
    task = await engine.start(plan_of(step("a", "calls.fail", on_error=on_error)))
    steps = await ended(task)
    assert (task.status, task.outcome) == (status, outcome)
    one = task.steps[StepPath("a")]
    if status == "paused":
        (pause,) = await engine.inbox(task.id)
        assert (pause.type, steps) == ("toolError", {"a": "paused"})
    else:
        assert one.error is not None
        assert (one.error.failure.category, one.error.failure.code) == ("configuration", "tool_misconfigured")
    failed = [event.data["error"] async for event in task.events(follow=False) if event.type == "attempt.failed"]
    assert [one["category"] for one in failed if isinstance(one, dict)] == ["configuration"]


@pytest.mark.req("2.2")
async def test_after_a_failure_that_is_not_critical_the_task_goes_on(engine: Engine, calls: Calls) -> None:
    task = await engine.start(plan_of(step("a"), step("b", "calls.fail", on_error="continue"), step("c", needs=["a"])))
    assert await ended(task) == {"a": "completed", "b": "failed", "c": "completed"}
    assert (task.status, task.outcome, calls.made) == ("completed", "partial", ["a", "b", "c"])


@pytest.mark.req("2.3")
async def test_who_needs_what_failed_is_skipped_with_its_name_and_the_others_run(engine: Engine, calls: Calls) -> None:
    needing: JsonObject = {"label": "b", "after": "${a}"}
    on: JsonObject = {"label": "c", "after": "${b}"}
    plan = plan_of(
        step("a", "calls.fail", on_error="continue"),
        {"id": "b", "tool": "calls.note", "with": needing},
        {"id": "c", "tool": "calls.note", "with": on},
        step("d", needs=[]),
    )
    task = await engine.start(plan)
    assert await ended(task) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "completed"}
    skips = [event async for event in task.events(follow=False) if event.type == "step.skipped"]
    assert [(event.step, event.data["reason"], event.data["upstream"]) for event in skips] == [
        ("b", "upstream", "a"),
        ("c", "upstream", "b"),
    ]
    assert sorted(calls.made) == ["a", "d"]


# --- pauses ---


@pytest.mark.req("4.1")
@pytest.mark.parametrize(("name", "mode", "used"), [
    ("calls.hold", "graceful", "graceful"),
    ("calls.hold", "immediate", "immediate"),
    ("calls.hold_once", "immediate", "graceful"),
])  # fmt: skip
async def test_a_pause_inside_a_long_step_is_answered_at_once(
    engine: Engine, calls: Calls, name: str, mode: str, used: str
) -> None:
    task = await engine.start(plan_of(step("a", name), step("b")))
    await calls.held.wait()
    await task.pause(mode)
    (pausing,) = [event async for event in task.events(follow=False) if event.type == "task.pausing"]
    assert (pausing.data["mode"], pausing.data["mode_used"]) == (mode, used)
    if used == "graceful":
        assert (await task.refresh()).status == "pausing", "the call may end"
        calls.release.set()
    assert (await asyncio.wait_for(task.result(on_pause="return"), 60)).status == "paused"
    assert "b" not in calls.made
    calls.release.set()
    await task.resume()
    assert (await asyncio.wait_for(task.result(), 60)).status == "completed"


@pytest.mark.req("4.1")
async def test_a_pause_is_answered_within_a_fifth_of_a_second(engine: Engine, calls: Calls) -> None:
    tasks = [await engine.start(plan_of(step(f"s{n}", "calls.hold"))) for n in range(5)]
    await calls.held.wait()
    took = []
    for task in tasks:
        began = time.perf_counter()
        await task.pause()
        took.append(time.perf_counter() - began)
    assert min(took) < 0.2
    calls.release.set()


@pytest.mark.req("4.1")
async def test_what_waits_in_the_queue_can_be_paused_and_what_has_ended_cannot(tmp_path: Path, calls: Calls) -> None:
    async with Engine(tmp_path / "everstep.db", tools=calls.tools(), config={"engine.tasks": 1}) as engine:
        first = await engine.start(plan_of(step("a", "calls.hold")))
        await calls.held.wait()
        queued = await engine.start(plan_of(step("q")))
        assert (await queued.refresh()).status == "queued"
        await queued.pause()
        assert (await queued.refresh()).status == "paused"
        calls.release.set()
        assert (await asyncio.wait_for(first.result(), 60)).status == "completed"
        with pytest.raises(Conflict) as refused:
            await first.pause()
        assert (refused.value.code, refused.value.details["status"]) == ("illegal_state", "completed")
        assert calls.made == ["a"]
        await queued.resume()
        assert (await asyncio.wait_for(queued.result(), 60)).status == "completed"


@pytest.mark.req("4.6", "DoD.8")
def test_each_task_is_after_a_kill_what_it_was_before(tmp_path: Path) -> None:
    """Paused stays paused, running is recovered, queued keeps its order, and what has ended has ended."""
    world = World(tmp_path)
    try:
        world.write_plan([step("done", "carrier.mark")], name="ended")
        world.carrier("start").communicate()
        world.write_plan([{"id": "q", "tool": "ask", "with": {"question": "which?"}}], name="asks")
        world.carrier("start").communicate()
        world.write_plan([{"id": "r", "tool": "carrier.hold", "with": {"label": "held"}}], name="runs")
        running = world.carrier("start", count=4, EVERSTEP_ENGINE__TASKS="1")
        until(running, "started")
        world.until_marked(2)
        kill(running)
        before = status_by_plan(world)
        assert before == [("ended", "completed"), ("asks", "paused"), ("runs", "running"), *[("runs", "queued")] * 3]
        for _ in range(2):
            again = world.carrier("carry", EVERSTEP_ENGINE__TASKS="1", EVERSTEP_FAILPOINTS="gate.scan.after=sigkill")
            again.communicate()
            assert status_by_plan(world) == [
                ("ended", "completed"), ("asks", "paused"), ("runs", "stalled"), *[("runs", "queued")] * 3,
            ]  # fmt: skip
        carrying = world.carrier("start", count=4, EVERSTEP_ENGINE__TASKS="1")
        until(carrying, "started")
        world.until_marked(3)
        kill(carrying)
        assert status_by_plan(world)[2:] == [("runs", "running"), *[("runs", "queued")] * 3], "the oldest goes first"
    finally:
        world.close()


def status_by_plan(world: World) -> list[tuple[str, str]]:
    return [
        (str(plan), str(status)) for plan, status in query(world, "SELECT plan_name, status FROM tasks ORDER BY num")
    ]


MOVED = Plan.from_dict(
    {
        "name": "moved",
        "steps": [
            {"id": "made", "tool": "file.write", "with": {"path": "a/b.txt", "text": "Hello"}},
            {"id": "sure", "tool": "ask", "with": {"question": "Sure?"}},
            {"id": "again", "tool": "file.read", "with": {"path": "a/b.txt"}},
            {"id": "more", "tool": "file.write", "with": {"path": "c.txt", "text": "${again.text}!"}},
        ],
        "outputs": {"text": "${again.text}", "written": "${more}"},
    }
)


@pytest.mark.req("4.2")
async def test_store_and_workspace_are_all_there_is_of_a_task(tmp_path: Path) -> None:
    """Paused, moved to another folder, gone on with there: what comes out is what an uninterrupted task gives."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    async with Engine(config=load_settings({}, cwd=first, env={})) as engine:
        task = await engine.start(MOVED)
        await task.result(on_pause="return")
    first.rename(second)
    async with Engine(config=load_settings({}, cwd=second, env={})) as engine:
        digests = []
        for begun in (engine.get(task.id), engine.start(MOVED)):
            one = await begun
            await one.result(on_pause="return")
            (pause,) = await engine.inbox(one.id)
            await pause.answer("yes")
            await one.result()
            await one.refresh()
            assert (second / "c.txt").read_text() == "Hello!"
            digests.append([step.output and step.output.digest for step in one.steps.values()])
            (second / "c.txt").unlink()
            (second / "a/b.txt").unlink()
    assert digests[0] == digests[1]
    assert not first.exists()
