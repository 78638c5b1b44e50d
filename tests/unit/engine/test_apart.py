"""Turns and calls of a task that a driver outside carries: whatever it asks twice, late or for nothing, counts once."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from everstep.domain.ids import ELSEWHERE, StepPath, TaskId, WorkerId
from everstep.domain.task import Lease
from everstep.domain.values import JsonObject
from everstep.facade.task import Task
from everstep.ports.driver import Carried, Turn
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, plan_of

pytestmark = pytest.mark.req("X.3")
A = StepPath("a")
FIRST, SECOND = WorkerId(f"{ELSEWHERE}first"), WorkerId(f"{ELSEWHERE}second")


class ByHand:
    """A driver that does nothing by itself: a test asks for the turns."""

    def __init__(self) -> None:
        self.told: list[TaskId] = []

    async def open(self, carried: Carried) -> None:
        self.carried = carried

    async def tell(self, task: TaskId) -> None:
        self.told.append(task)

    async def close(self, grace_s: float) -> None:
        """There is nothing."""


@pytest.fixture
def driver() -> ByHand:
    return ByHand()


@pytest.fixture
async def engine(tools: Tools, driver: ByHand) -> AsyncIterator[TestEngine]:
    config: JsonObject = {"engine": {"kind": "temporal"}, "pools": {"narrow": 1}}
    async with TestEngine(tools.all(), config=config, driver=driver) as opened:
        yield opened
        assert await opened.store.check() == [], "rows follow from journals"


async def begun(engine: TestEngine, driver: ByHand, *steps: JsonObject) -> tuple[Task, Lease, Turn]:
    """A task with these steps, taken by the first holder."""
    task = await engine.start(plan_of(*steps, parallel=2))
    turn = await driver.carried.begin(TaskId(task.id), FIRST)
    assert turn.lease is not None
    return task, turn.lease, turn


async def types(task: Task, *wanted: str) -> list[str]:
    return [event.type async for event in task.events(follow=False) if event.type in wanted]


def once(id: str = "a") -> JsonObject:
    return {"id": id, "tool": "test.once"}


async def test_a_call_that_is_asked_for_twice_at_once_is_made_once(
    engine: TestEngine, driver: ByHand, tools: Tools
) -> None:
    task, lease, _ = await begun(engine, driver, once())
    first, *others = (asyncio.create_task(driver.carried.call(lease, A, 1)) for _ in range(5))
    assert await asyncio.gather(*others) == [None] * 4, "the end is for the first one to tell"
    await tools.holding.wait()
    tools.release.set()
    turn = await first
    assert turn is not None
    assert turn.over
    assert tools.calls["once"] == 1
    assert await types(task, "attempt.started", "step.completed") == ["attempt.started", "step.completed"]
    assert await driver.carried.call(lease, A, 1) == turn, "and later there is nothing to make"


async def test_a_call_that_nobody_has_begun_is_given_up_without_a_question(
    engine: TestEngine, driver: ByHand, tools: Tools
) -> None:
    """A worker that dies with a call in its hands which it has not begun asks nobody for anything."""
    task, lease, _ = await begun(engine, driver, once())
    turn = await driver.carried.give_up(lease, A, 1)
    assert await types(task, "attempt.abandoned", "pause.opened") == ["attempt.abandoned"]
    late = await driver.carried.call(lease, A, 1)
    assert late is not None
    assert not tools.calls, "what was given up is not begun any more"
    assert [(one.step, one.attempt) for one in turn.open] == [(A, 2)], turn


async def test_a_call_that_somebody_has_begun_is_given_up_by_the_effect_rule(
    engine: TestEngine, driver: ByHand, tools: Tools
) -> None:
    task, lease, _ = await begun(engine, driver, once())
    call = asyncio.create_task(driver.carried.call(lease, A, 1))
    await tools.holding.wait()
    await driver.carried.give_up(lease, A, 1)
    assert engine.inbox.only().type == "uncertainOutcome"
    tools.release.set()
    await call
    assert engine.inbox.only().type == "uncertainOutcome", "an end that comes late says nothing any more"
    assert await types(task, "step.completed") == []
    assert tools.calls["once"] == 1


async def test_a_call_under_a_lease_that_is_over_is_not_made(engine: TestEngine, driver: ByHand, tools: Tools) -> None:
    _, lease, _ = await begun(engine, driver, {"id": "a", "tool": "test.echo"})
    turn = await driver.carried.begin(lease.task, SECOND)
    assert turn.lease is not None
    assert turn.lease.epoch > lease.epoch
    assert await driver.carried.call(lease, A, 1) is not None
    assert not tools.calls
    (again,) = turn.open
    last = await driver.carried.call(turn.lease, A, again.attempt)
    assert last is not None
    assert last.over


async def test_who_waits_for_a_slot_has_not_begun(engine: TestEngine, driver: ByHand, tools: Tools) -> None:
    """So many at a time in this worker; a call that is ended while it waits was never made."""
    steps: list[JsonObject] = [{**once(one), "pool": "narrow", "with": {"label": one}, "needs": []} for one in "ab"]
    task, lease, turn = await begun(engine, driver, *steps)
    assert [one.step for one in turn.open] == ["a", "b"]
    first, second = (asyncio.create_task(driver.carried.call(lease, one.step, one.attempt)) for one in turn.open)
    await tools.holding.wait()
    await asyncio.sleep(0)
    assert tools.calls == {"a": 1}
    second.cancel()  # its worker is told to stop
    await asyncio.wait((second,))
    await driver.carried.give_up(lease, StepPath("b"), 1)
    assert await types(task, "attempt.abandoned", "pause.opened") == ["attempt.abandoned"]
    tools.release.set()
    await first
    assert tools.calls == {"a": 1}


async def test_what_should_end_is_said(engine: TestEngine, driver: ByHand, tools: Tools) -> None:
    task, lease, turn = await begun(engine, driver, {"id": "a", "tool": "test.hold"})
    assert not turn.open[0].stop
    call = asyncio.create_task(driver.carried.call(lease, A, 1))
    await tools.holding.wait()
    await task.pause(mode="immediate")
    assert TaskId(task.id) in driver.told
    assert (await driver.carried.look(lease)).open[0].stop
    call.cancel()
    after = await call
    assert after is not None
    assert after.lease is None
    assert (await task.refresh()).status == "paused"
