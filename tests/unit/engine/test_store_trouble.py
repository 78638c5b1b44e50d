"""A store that does not answer for a moment costs a moment: no call is given up for it, no task is left standing."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.errors import Unavailable
from everstep.domain.values import JsonObject
from everstep.ports.tool import Transient
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, finish, plan_of

HOLD: JsonObject = {"id": "once", "tool": "test.once", "needs": []}
WAIT: JsonObject = {"id": "w", "tool": "wait", "with": {"event": "paid", "key": "k"}, "needs": []}
NAP: JsonObject = {"id": "nap", "tool": "wait", "with": {"for": "10s"}, "needs": []}


class Trouble:
    """Takes the place of a verb, and does not answer the first times it is asked."""

    def __init__(self, verb: Callable[..., Any], times: int) -> None:
        self.verb = verb
        self.left = times

    async def __call__(self, *asked: Any) -> Any:
        if self.left:
            self.left -= 1
            raise Unavailable("others write the same")
        return await self.verb(*asked)


class Unheard(Trouble):
    """Does what it is asked the first times too, and nobody hears of it."""

    async def __call__(self, *asked: Any) -> Any:
        done = await self.verb(*asked)
        if self.left:
            self.left -= 1
            raise Unavailable("nobody knows whether that was written")
        return done


def unheard(on: object, verb: str, monkeypatch: pytest.MonkeyPatch) -> Trouble:
    one = Unheard(getattr(on, verb), 1)
    monkeypatch.setattr(on, verb, one)
    return one


def trouble(on: object, verb: str, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> Trouble:
    one = Trouble(getattr(on, verb), times)
    monkeypatch.setattr(on, verb, one)
    return one


async def test_a_task_that_cannot_be_read_keeps_its_calls(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await engine.start(plan_of(HOLD))
    await tools.holding.wait()
    hard = trouble(engine.store, "load_tasks", monkeypatch, times=2)
    engine.desk._runtime.loop.nudge(task.task_id)
    await engine.clock.advance("5s")
    assert hard.left == 0
    tools.release.set()
    await engine.clock.advance("1s")
    assert (await asyncio.wait_for(task.result(on_pause="return"), 60)).status == "completed"
    assert tools.calls["once"] == 1


@pytest.mark.parametrize(
    ("plan", "ends"),
    [
        pytest.param(plan_of(WAIT), "completed", id="alone"),
        pytest.param(plan_of(WAIT, HOLD, parallel=2), "paused", id="beside a call"),
    ],
)
async def test_a_walk_that_the_store_has_stopped_is_taken_up_again(
    engine: TestEngine, plan: Plan, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had in flight is a matter of the effect rule; nobody waits for it in vain."""
    hard = trouble(engine.store.signals, "listen", monkeypatch)
    task = await engine.start(plan)
    await engine.clock.advance("5s")
    assert hard.left == 0
    assert await engine.signal("paid", "k") == 1
    await engine.clock.advance("5s")
    assert (await asyncio.wait_for(task.result(on_pause="return"), 60)).status == ends


async def test_a_task_that_is_due_and_cannot_be_read_is_read_later(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await engine.start(plan_of(NAP))
    await engine.clock.advance("1s")
    hard = trouble(engine.store, "load_tasks", monkeypatch)
    await engine.clock.advance("20s")
    assert hard.left == 0
    assert (await asyncio.wait_for(task.result(), 60)).status == "completed"


async def test_what_is_never_ours_again_is_not_handed_back(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended meanwhile: there is nothing to hand back, and it is not tried for ever."""
    trouble(engine.store.signals, "listen", monkeypatch)
    task = await engine.start(plan_of(WAIT))
    await task.cancel()
    await engine.clock.advance("5s")
    assert (await task.refresh()).status == "cancelled"
    assert len(engine.desk._runtime.loop._errands) == 0


async def test_who_waits_for_an_end_that_nobody_heard_of_is_told(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await engine.start(plan_of(HOLD))
    waiting = asyncio.ensure_future(task.result())
    await tools.holding.wait()
    hard = unheard(engine.store, "commit_steps", monkeypatch)
    tools.release.set()
    await engine.clock.advance("5s")
    assert hard.left == 0
    assert (await asyncio.wait_for(waiting, 60)).status == "completed"
    assert tools.calls["once"] == 1


async def test_who_waits_for_a_child_whose_end_nobody_heard_of_goes_on(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    child: JsonObject = {"name": "child", "steps": [{"id": "h", "tool": "test.hold"}]}
    plan = plan_of({"id": "sub", "tool": "plan.run", "with": {"plan": child}})
    plan.trusted = True
    task = await engine.start(plan)
    async with asyncio.timeout(60):
        while not tools.holding.is_set():
            await asyncio.sleep(0.005)  # plans are read in a thread
            await engine.clock.advance("100ms")
    hard = unheard(engine.store, "commit_steps", monkeypatch)
    tools.release.set()
    await engine.clock.advance("5s")
    assert hard.left == 0
    assert (await asyncio.wait_for(task.result(), 60)).status == "completed"


@pytest.mark.parametrize(("place", "ends"), [(True, "paused"), (False, "completed")])
async def test_a_task_whose_creation_nobody_heard_of_is_carried(
    engine: TestEngine, tools: Tools, place: bool, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wanted it may ask again with the same key; nobody has to. Where it had begun, the effect rule asks."""
    if not place:
        monkeypatch.setattr(type(engine.desk._runtime.loop), "place_for", lambda *_: False)
    hard = unheard(engine.store, "create_tasks", monkeypatch)
    with pytest.raises(Unavailable):
        await engine.start(plan_of(HOLD), key="k")
    assert hard.left == 0
    await engine.clock.advance("5s")
    tools.release.set()
    await engine.clock.advance("5s")
    task = await engine.start(plan_of(HOLD), key="k")
    assert (await asyncio.wait_for(task.result(on_pause="return"), 60)).status == ends
    assert tools.calls["once"] == (ends == "completed")


async def test_a_lease_that_nobody_heard_of_is_not_kept(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(engine.desk._runtime.loop), "place_for", lambda *_: False)
    hard = unheard(engine.store, "claim_tasks", monkeypatch)
    task = await engine.start(plan_of(HOLD))
    await engine.clock.advance("5s")
    assert hard.left == 0
    tools.release.set()
    await engine.clock.advance("5s")
    assert (await asyncio.wait_for(task.result(), 60)).status == "completed"
    assert tools.calls["once"] == 1


async def test_a_command_that_nobody_heard_of_is_carried_out(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.release.set()
    task = await engine.start(plan_of({**HOLD, "approve": "Do it?"}))
    await engine.clock.advance("1s")
    pause = engine.inbox.only()
    hard = unheard(engine.store, "commit_commands", monkeypatch)
    with pytest.raises(Unavailable):
        await pause.approve()
    assert hard.left == 0
    await engine.clock.advance("5s")
    assert (await asyncio.wait_for(task.result(), 60)).status == "completed"


async def test_a_second_try_waits_until_the_store_tells_how_far_the_first_one_came(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.raises["echo"] = [Transient("busy"), None]
    hard = trouble(engine.store.marks, "find", monkeypatch, times=3)
    task = await engine.start(plan_of({"id": "a", "tool": "test.echo", "with": {}}))
    assert (await finish(engine, task)).status == "completed"
    assert hard.left == 0
    assert tools.calls["echo"] == 2


async def test_a_call_that_is_given_up_while_the_store_is_away_was_never_made(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.raises["echo"] = [Transient("busy"), None]
    trouble(engine.store.marks, "find", monkeypatch, times=10_000)
    task = await engine.start(plan_of({"id": "a", "tool": "test.echo", "with": {}}))
    await engine.clock.advance("1m")
    await task.cancel()
    await engine.clock.advance("1m")
    assert (await task.refresh()).status == "cancelled"
    assert tools.calls["echo"] == 1
