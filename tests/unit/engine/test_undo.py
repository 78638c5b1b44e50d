"""Undo: a task of compensations, the last outcome first; never one of them twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.errors import Conflict, Validation
from everstep.domain.ids import StepPath
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import Call, Ctx, Misconfigured
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, finish


class World:
    """What was done, and what was taken back."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails = False
        self.held = asyncio.Event()
        self.release = asyncio.Event()
        self.release.set()

    def all(self) -> list[object]:
        def take_back(call: Call, output: JsonValue, _ctx: Ctx) -> None:
            assert isinstance(output, dict)
            self.log.append(f"-{call.arguments['name']}:{output['made']}")

        @tool("world.make", undo=take_back)
        async def make(name: str) -> dict[str, str]:
            """Make something that its own family can take back."""
            self.log.append(f"+{name}")
            return {"made": name.upper()}

        @tool("world.put")
        async def put(name: str) -> dict[str, str]:
            """Put something somewhere."""
            self.log.append(f"+{name}")
            return {"at": f"place of {name}"}

        @tool("world.remove")
        async def remove(at: str) -> dict[str, str]:
            """Take something away."""
            self.held.set()
            await self.release.wait()
            if self.fails:
                raise Misconfigured("cannot")
            self.log.append(f"-{at}")
            return {}

        return [make, put, remove]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def engine(world: World) -> AsyncIterator[TestEngine]:
    async with TestEngine([*world.all(), *Tools().all()]) as opened:
        yield opened
        assert await opened.store.check() == []


def put(id: str, name: JsonValue = None, **keys: JsonValue) -> JsonObject:
    undo: JsonObject = {"tool": "world.remove", "with": {"at": f"${{{id}.at}}"}}
    return {"id": id, "tool": "world.put", "with": {"name": name or id}, "undo": undo, **keys}


MAKE: JsonObject = {"id": "m", "tool": "world.make", "with": {"name": "m"}}
LOOK: JsonObject = {"id": "look", "tool": "test.echo"}
SEND: JsonObject = {"id": "send", "tool": "world.put", "with": {"name": "mail"}}


async def done(engine: TestEngine, *steps: JsonObject, **keys: JsonValue) -> Task:
    task = await engine.start(Plan.from_dict({"name": "p", "steps": list(steps), **keys}))
    assert (await finish(engine, task)).status == "completed"
    return await task.refresh()


async def test_the_last_outcome_is_taken_back_first(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"), LOOK, MAKE, put("b", "${m.made}"))
    world.log.clear()
    undo = await task.undo(note="wrong folder")
    assert (await finish(engine, undo)).status == "completed"
    assert world.log == ["-place of M", "-m:M", "-place of a"]
    created = await anext(aiter(undo.events()))
    assert created.data["parent"] == {"task": task.id, "step": None, "link": "undo_of"}
    assert (await task.refresh()).status == "completed", "the other task stays as it is"


async def test_a_question_names_what_stays_and_the_point_of_no_return(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"), LOOK, SEND, put("b"))
    assert await task.undo(dry_run=True) == {
        "undo": ["b", "a"],
        "not_undoable": [
            {"step": "send", "why": "world.put has no undo"},
            {"step": "look", "why": "it has no effect, so there is nothing to take back"},
        ],
        "conflicts": [],
        "point_of_no_return": "send",
    }
    assert (await engine.desk.get(task.id, engine.who)).steps[StepPath("a")].undone_by is None


async def test_only_some_steps(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"), put("b"))
    with pytest.raises(Validation, match="did you mean"):
        await task.undo(["aa"])
    undo = await task.undo(["a"])
    await finish(engine, undo)
    assert world.log == ["+a", "+b", "-place of a"]
    assert (await task.undo(dry_run=True))["undo"] == ["b"]


async def test_what_looks_like_a_binding_in_a_value_is_text(engine: TestEngine, world: World) -> None:
    plan: JsonObject = {"name": "p", "inputs": {"n": "string"}, "steps": [put("a", "${inputs.n}")]}
    task = await engine.start(Plan.from_dict(plan), {"n": "${a} costs $${5}"})
    await finish(engine, task)
    undo = await task.undo()
    assert (await finish(engine, undo)).status == "completed"
    assert world.log[-1] == "-place of ${a} costs $${5}"


async def test_a_list_is_taken_back_item_by_item(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a", "${item}", for_each=["x", "y", "z"]))
    undo = await task.undo()
    assert (await finish(engine, undo)).status == "completed"
    assert world.log[3:] == ["-place of z", "-place of y", "-place of x"]


@pytest.mark.req("X.9")
async def test_no_compensation_twice_one_after_the_other(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"))
    undo = await task.undo()
    await finish(engine, undo)
    with pytest.raises(Conflict) as refused:
        await task.undo()
    assert refused.value.code == "nothing_to_undo"
    assert (await task.undo(dry_run=True))["not_undoable"] == [
        {"step": "a", "why": f"{undo.id} has taken it back"},
    ]
    assert world.log == ["+a", "-place of a"]


@pytest.mark.req("X.9")
async def test_no_compensation_twice_at_once_and_during_the_first(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"), put("b"))
    world.release.clear()
    handles = [await engine.get(task.id) for _ in range(6)]
    made = await asyncio.gather(*(handle.undo() for handle in handles), return_exceptions=True)
    assert sum(isinstance(one, Conflict) for one in made) == 5
    (undo,) = [one for one in made if isinstance(one, Task)]
    await world.held.wait()
    with pytest.raises(Conflict, match="is taking it back"):
        await task.undo()
    world.release.set()
    await finish(engine, undo)
    assert world.log == ["+a", "+b", "-place of b", "-place of a"]


@pytest.mark.req("X.9")
async def test_a_crash_inside_a_compensation_asks_and_does_not_repeat(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"))
    world.release.clear()
    undo = await task.undo()
    await world.held.wait()
    await engine.crash()
    await engine.clock.advance("1s")
    undo = await engine.get(undo.id)
    assert (undo.status, engine.inbox.only().type) == ("paused", "uncertainOutcome")
    with pytest.raises(Conflict, match="taking it back"):
        await (await engine.get(task.id)).undo()
    await engine.inbox.only().happened({})
    world.release.set()
    assert (await finish(engine, await undo.refresh())).status == "completed"


async def test_what_certainly_was_not_taken_back_can_be_again(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"), put("b"))
    world.fails = True
    undo = await task.undo()
    assert (await finish(engine, undo)).outcome == "partial"
    with pytest.raises(Conflict, match="must not be made twice"):
        await undo.retry("undo_a")
    world.fails = False
    second = await task.undo()
    assert (await finish(engine, second)).status == "completed"
    assert world.log == ["+a", "+b", "-place of b", "-place of a"]


async def test_a_retry_and_a_fork_do_not_keep_what_was_undone(engine: TestEngine, world: World) -> None:
    task = await done(engine, put("a"), {**LOOK, "needs": []})
    await finish(engine, await task.undo())
    forked = await task.fork("look")
    assert (await finish(engine, forked)).status == "completed"
    assert world.log == ["+a", "-place of a", "+a"]
    await task.retry("look")
    assert (await finish(engine, task)).status == "completed"
    assert world.log == ["+a", "-place of a", "+a", "+a"]
    assert (await task.undo(dry_run=True))["undo"] == ["a"], "what is done anew can be taken back anew"


async def test_only_of_a_task_that_stands_still(engine: TestEngine, world: World) -> None:
    task = await engine.start(
        Plan.from_dict({"name": "p", "steps": [put("a"), {"id": "w", "tool": "wait", "with": {"for": "1h"}}]})
    )
    await engine.clock.advance("1s")
    with pytest.raises(Conflict, match="cannot undo a task that is running"):
        await task.undo()
    await task.pause()
    await engine.clock.advance("1s")
    undo = await task.undo()
    assert (await finish(engine, undo)).status == "completed"
