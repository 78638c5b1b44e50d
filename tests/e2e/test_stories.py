"""What a task does is the same whoever carries it: each story on one engine, on a fleet, and on Temporal."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from everstep import Engine, Misconfigured, Pause, Plan, Task, Transient, Uncertain, tool
from everstep.domain.values import JsonObject, JsonValue
from tests.e2e.carriers import KINDS, carried

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("X.3")]
PATIENCE_S = 120


class World:
    """Tools that count, fail or hold as they are told."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.made: list[str] = []
        self.held = asyncio.Event()
        self.release = asyncio.Event()
        self.fails = 0
        self.now = self.most = 0

    def tools(self) -> list[object]:
        @tool("world.note", effect="pure")
        async def note(label: str) -> str:
            """Leave a mark."""
            self.made.append(label)
            return label

        @tool("world.shaky", effect="pure")
        async def shaky(label: str) -> str:
            """Fail a few times."""
            self.made.append(label)
            if self.made.count(label) <= self.fails:
                raise Transient("not yet")
            return label

        @tool("world.broken", effect="pure")
        async def broken(label: str) -> str:
            """Fail for good."""
            self.made.append(label)
            raise Misconfigured("there is no such thing")

        @tool("world.hold", effect="idempotent")
        async def hold(label: str) -> str:
            """Wait until somebody lets go."""
            self.made.append(label)
            self.held.set()
            await self.release.wait()
            return label

        @tool("world.vanish")
        async def vanish(label: str) -> str:
            """Do it once, and lose the answer."""
            self.made.append(label)
            raise Uncertain("no answer came")

        @tool("world.fill", effect="pure")
        async def fill(size: int) -> str:
            """A value that is kept apart from the journal."""
            return "x" * size

        @tool("world.measure", effect="pure")
        async def measure(text: str) -> int:
            """How much came."""
            return len(text)

        @tool("world.narrow", effect="pure", pool="narrow")
        async def narrow(label: str) -> str:
            """Count who is here at the same time."""
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.02)
            self.now -= 1
            return label

        @tool("world.paced", effect="pure", rate="2/300ms")
        async def paced(label: str) -> str:
            """Two in so long."""
            return label

        return [note, shaky, broken, hold, vanish, fill, measure, narrow, paced]


WORLD = World()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    async with carried("embedded", tmp_path_factory.mktemp("embedded"), WORLD.tools()) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    async with carried("fleet", tmp_path_factory.mktemp("fleet"), WORLD.tools()) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    async with carried("temporal", tmp_path_factory.mktemp("temporal"), WORLD.tools()) as engine:
        yield engine


@pytest.fixture(params=KINDS)
def door(request: pytest.FixtureRequest) -> Engine:
    """Opened once, by the first story that needs it."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Engine)
    return found


@pytest.fixture
def world() -> Iterator[World]:
    """As it is before a story; what a story held is let go."""
    WORLD.begin()
    yield WORLD
    WORLD.release.set()


def step(id: str, name: str = "note", **keys: JsonValue) -> JsonObject:
    return {"id": id, "tool": f"world.{name}", "with": {"label": id}, **keys}


def plan_of(*steps: JsonObject, **keys: JsonValue) -> Plan:
    return Plan.from_dict({"name": "story", "steps": list(steps), **keys})


async def ended(task: Task) -> str:
    return (await asyncio.wait_for(task.result(), PATIENCE_S)).status


async def until(task: Task, type: str, step: str | None = None) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async for event in task.events():
            if event.type == type and step in (None, event.step):
                return
    raise AssertionError(f"{type} never came")


async def types(task: Task) -> list[str]:
    return [event.type async for event in task.events(follow=False)]


async def test_a_sequence(door: Engine, world: World) -> None:
    task = await door.start(
        plan_of(
            step("a"),
            {**step("b"), "with": {"label": "${a}b"}},
            {"id": "w", "tool": "wait", "with": {"for": "50ms"}},
            step("c", needs=["b", "w"]),
            outputs={"last": "${b}"},
        )
    )
    assert await ended(task) == "completed"
    assert (await task.refresh()).outputs == {"last": "ab"}
    assert world.made == ["a", "ab", "c"]


async def test_a_retry(door: Engine, world: World) -> None:
    world.fails = 2
    task = await door.start(plan_of(step("a", "shaky", retry=3), step("b")))
    assert await ended(task) == "completed"
    assert world.made == ["a", "a", "a", "b"]
    assert (await types(task)).count("attempt.failed") == 2


async def test_a_fallback(door: Engine, world: World) -> None:
    instead: JsonValue = [{"tool": "world.note", "with": {"label": "instead"}}]
    task = await door.start(plan_of(step("a", "broken", retry=0, fallback=instead), outputs={"a": "${a}"}))
    assert await ended(task) == "completed"
    assert (await task.refresh()).outputs == {"a": "instead"}


async def test_a_step_that_is_skipped(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "broken", retry=0, on_error="pause"), step("b")))
    await (await asked(door, "toolError")).skip()
    assert await ended(task) == "completed"
    assert {path: one.status.value for path, one in (await task.refresh()).steps.items()} == {
        "a": "skipped",
        "b": "completed",
    }


async def asked(door: Engine, type: str) -> Pause:
    """The question, once it is asked."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for pause in await door.inbox():
                assert pause.type == type, pause
                return pause
            await asyncio.sleep(0.02)


async def test_a_pause(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "hold"), step("b", needs=["a"])))
    await asyncio.wait_for(world.held.wait(), PATIENCE_S)
    await task.pause()
    world.release.set()
    await until(task, "task.paused")
    assert world.made == ["a"], "what was under way ends, and nothing begins"
    await task.resume()
    assert await ended(task) == "completed"
    assert world.made == ["a", "b"]


async def test_a_pause_at_once_ends_a_call_that_may_be_repeated(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "hold")))
    await asyncio.wait_for(world.held.wait(), PATIENCE_S)
    await task.pause(mode="immediate")
    await until(task, "task.paused")
    world.release.set()
    await task.resume()
    assert await ended(task) == "completed"
    assert world.made == ["a", "a"]


async def test_an_approval(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", approve=True), step("b", needs=["a"])))
    pause = await asked(door, "approvalRequired")
    assert world.made == []
    await pause.approve()
    assert await ended(task) == "completed"
    assert world.made == ["a", "b"]


async def test_an_uncertain_outcome(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "vanish"), outputs={"a": "${a}"}))
    await (await asked(door, "uncertainOutcome")).happened("made")
    assert await ended(task) == "completed"
    assert (await task.refresh()).outputs == {"a": "made"}
    assert world.made == ["a"], "nobody calls it twice"


LAST: JsonObject = {"finally": [step("z")]}


async def test_a_cancel_reaches_the_call(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "hold"), step("b", needs=["a"]), **LAST))
    await asyncio.wait_for(world.held.wait(), PATIENCE_S)
    await task.cancel()
    assert await ended(task) == "cancelled"
    assert world.made == ["a", "z"]


async def test_a_fork(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a"), step("b", needs=["a"])))
    assert await ended(task) == "completed"
    forked = await task.fork("b", arguments={"b": {"label": "other"}})
    assert await ended(forked) == "completed"
    assert world.made == ["a", "b", "other"]


async def test_a_patch(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "hold"), step("b", needs=["a"])))
    await asyncio.wait_for(world.held.wait(), PATIENCE_S)
    await task.patch([{"op": "append", "step": step("c", needs=["b"])}], task.revision)
    world.release.set()
    assert await ended(task) == "completed"
    assert world.made == ["a", "b", "c"]


async def test_a_plan_in_a_plan_and_a_signal(door: Engine, world: World, tmp_path: Path) -> None:
    kid: JsonObject = {"name": "kid", "steps": [step("k")]}
    steps: list[JsonObject] = [
        {"id": "p", "tool": "plan.run", "with": {"plan": kid}},
        {"id": "w", "tool": "wait", "with": {"event": "came"}, "needs": ["p"]},
        step("b", needs=["w"]),
    ]
    file = tmp_path / "story.plan.json"
    file.write_text(json.dumps({"name": "story", "steps": steps}))
    task = await door.start(Plan.load(file))
    await until(task, "step.waiting", "w")
    await door.signal("came", task.id)
    assert await ended(task) == "completed"
    assert world.made == ["k", "b"]


async def test_steps_beside_each_other(door: Engine, world: World) -> None:
    steps = [step(f"s{n}") for n in range(6)]
    task = await door.start(plan_of(*steps, step("last", needs=[f"s{n}" for n in range(6)]), parallel=6))
    assert await ended(task) == "completed"
    assert sorted(world.made[:6]) == [f"s{n}" for n in range(6)]
    assert world.made[6:] == ["last"]


async def test_a_halt_at_once_ends_calls_and_what_may_be_repeated_is_made_again(door: Engine, world: World) -> None:
    task = await door.start(plan_of(step("a", "hold"), step("b", needs=["a"])))
    await asyncio.wait_for(world.held.wait(), PATIENCE_S)
    await door.desk.halt(door.who, "fire drill", "immediate")
    await until(task, "attempt.killed", "a")
    world.release.set()
    await door.desk.lift_halt()
    assert await ended(task) == "completed"
    assert world.made == ["a", "a", "b"]


async def test_a_large_value(door: Engine, world: World) -> None:
    steps: list[JsonObject] = [
        {"id": "a", "tool": "world.fill", "with": {"size": 300_000}},
        {"id": "b", "tool": "world.measure", "with": {"text": "${a}"}},
    ]
    task = await door.start(plan_of(*steps, outputs={"n": "${b}"}))
    assert await ended(task) == "completed"
    assert (await task.refresh()).outputs == {"n": 300_000}


async def test_a_pool_and_a_rate(door: Engine, world: World) -> None:
    """A pool has one slot in each worker; of a rate all workers share the places."""
    many = [step(f"n{n}", "narrow") for n in range(6)]
    task = await door.start(plan_of(*many, *(step(f"p{n}", "paced", needs=[]) for n in range(3)), parallel=9))
    assert await ended(task) == "completed"
    assert world.most <= 2
    waits = [event.data["waiting_on"] async for event in task.events(follow=False) if event.type == "step.waiting"]
    assert "rate" in [one["kind"] for one in waits if isinstance(one, dict)], "all three asked at once"
