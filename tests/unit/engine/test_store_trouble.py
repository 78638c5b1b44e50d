"""A store that does not answer for a moment costs a moment: no call is given up for it, no task is left standing."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.errors import Unavailable
from everstep.domain.values import JsonObject
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, plan_of

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
