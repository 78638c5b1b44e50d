"""Nobody is left standing: not by a caller who leaves, not by a moment in which two things happen at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from everstep.authoring.durable import durable
from everstep.domain.errors import NotFound, Unavailable
from everstep.domain.values import JsonObject
from everstep.engine import submit
from everstep.facade.task import Task
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, chain, echo, plan_of

ASKS: JsonObject = {"id": "ask", "tool": "ask", "with": {"question": "which?", "schema": {"type": "string"}}}
BREAKS: JsonObject = {**echo("odd"), "on_error": "pause"}
WAITS: JsonObject = {"id": "w", "tool": "wait", "with": {"event": "paid", "key": "k"}}
WITHIN_S = 60


@durable("asking", version="1")
async def asking(ctx: Any) -> dict[str, bool]:
    """Needs somebody."""
    await ctx.approve("Go on?")
    return {"done": True}


class Held:
    """Takes the place of a verb of the store: it is done, but its answer waits until `go_on` is set."""

    def __init__(self, on: object, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.go_on = asyncio.Event(), asyncio.Event()
        self._verb = getattr(on, verb)
        monkeypatch.setattr(on, verb, self)

    async def __call__(self, *asked: Any) -> Any:
        answer = await self._verb(*asked)
        self.done.set()
        await self.go_on.wait()
        return answer


async def left_waiting(work: Awaitable[object], held: Held) -> None:
    """Ask for something, and stop waiting for it once it is durable."""
    asking = asyncio.ensure_future(work)
    await asyncio.wait_for(held.done.wait(), WITHIN_S)
    asking.cancel()
    await asyncio.wait((asking,))
    assert asking.cancelled()
    held.go_on.set()


async def status(task: Task) -> str:
    return (await asyncio.wait_for(task.result(on_pause="return"), WITHIN_S)).status


async def test_who_stops_waiting_for_a_start_has_started_it(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(engine.store, "create_tasks", monkeypatch)
    await left_waiting(engine.start(chain("a", "b"), key="mine"), held)
    assert await status(await engine.get("mine")) == "completed"


async def test_who_stops_waiting_for_an_answer_has_given_it(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await engine.start(plan_of(ASKS))
    assert await status(task) == "paused"
    await left_waiting(engine.inbox.only().answer("this"), Held(engine.store, "commit_commands", monkeypatch))
    assert (await asyncio.wait_for(task.result(), WITHIN_S)).status == "completed"


async def test_who_stops_waiting_for_a_resume_has_resumed(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await engine.start(plan_of(WAITS, echo("next")))
    assert await engine.signal("paid", "k") == 1
    assert await status(task) == "completed"
    task = await engine.start(plan_of({**WAITS, "with": {"event": "sent"}}, echo("next")))
    await task.pause()
    assert await status(task) == "paused"
    await left_waiting(task.resume(), Held(engine.store, "commit_commands", monkeypatch))
    assert await engine.signal("sent", task.id) == 1
    assert (await asyncio.wait_for(task.result(), WITHIN_S)).status == "completed"


async def test_who_stops_waiting_for_a_signal_has_sent_it(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await engine.start(plan_of(WAITS))
    await left_waiting(engine.signal("paid", "k"), Held(engine.store, "commit_commands", monkeypatch))
    assert await status(task) == "completed"


async def test_a_stop_waits_for_what_is_being_started(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a walk would begin behind the stop, on a store that closes."""
    engine = TestEngine(tools.all())
    await engine.open()
    held = Held(engine.store, "create_tasks", monkeypatch)
    starting = asyncio.ensure_future(engine.start(chain("a", "b"), key="mine"))
    await asyncio.wait_for(held.done.wait(), WITHIN_S)
    stopping = asyncio.ensure_future(engine.close())
    await asyncio.sleep(0)
    assert not stopping.done()
    held.go_on.set()
    await asyncio.wait_for(asyncio.gather(starting, stopping), WITHIN_S)
    await engine.open()
    assert await status(await engine.get("mine")) == "completed"
    await engine.close()


async def test_who_goes_to_rest_while_it_is_asked_what_is_due_wakes_up(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was asked before it knew of the later one."""
    early = await engine.start(plan_of({"id": "nap", "tool": "wait", "with": {"for": "10s"}}))
    await engine.clock.advance("1s")
    held = Held(engine.store, "due", monkeypatch)
    advancing = asyncio.ensure_future(engine.clock.advance("10s"))
    await asyncio.wait_for(held.done.wait(), WITHIN_S)
    late = await engine.start(plan_of({"id": "nap", "tool": "wait", "with": {"for": "30s"}}))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not engine.desk.runtime.loop.busy, "it rests"
    held.go_on.set()
    await advancing
    assert await status(early) == "completed"
    await engine.clock.advance("40s")
    assert (await late.refresh()).status == "completed"


async def test_a_store_that_cannot_say_what_is_due_is_asked_again(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await engine.start(plan_of({"id": "nap", "tool": "wait", "with": {"for": "10s"}}))
    await engine.clock.advance("1s")
    once(engine.store, "due", monkeypatch, Unavailable("not now"))
    await engine.clock.advance("20s")
    assert (await task.refresh()).status == "completed"


async def test_a_place_that_was_not_needed_goes_to_who_waits(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    async with TestEngine(tools.all(), config={"engine": {"tasks": 1}}) as engine:
        first = await engine.start(chain("a"), key="same")
        assert await status(first) == "completed"
        held = Held(engine.store, "create_tasks", monkeypatch)
        again = asyncio.ensure_future(engine.start(chain("a"), key="same"))
        await asyncio.wait_for(held.done.wait(), WITHIN_S)
        monkeypatch.undo()
        waits = await engine.start(chain("b"))
        for _ in range(20):
            await asyncio.sleep(0)
        held.go_on.set()
        assert (await again).id == first.id
        assert await status(waits) == "completed"


async def test_who_is_created_during_a_claim_takes_no_place_of_it(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is claimed has its places before it is walked: else more would be under way than there are."""
    async with TestEngine(tools.all(), config={"engine": {"tasks": 1}}) as engine:
        await engine.desk.halt(engine.who, None)
        claimed = await engine.start(plan_of({"id": "x", "tool": "test.hold", "with": {"label": "claimed"}}))
        held = Held(engine.store, "claim_tasks", monkeypatch)
        await engine.desk.lift_halt()
        await asyncio.wait_for(held.done.wait(), WITHIN_S)
        later = await engine.start(chain("later"))
        held.go_on.set()
        await asyncio.wait_for(tools.holding.wait(), WITHIN_S)
        assert tools.calls == {"claimed": 1}
        tools.release.set()
        assert [await status(one) for one in (claimed, later)] == ["completed"] * 2


async def test_a_start_that_breaks_keeps_no_place(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    async with TestEngine(tools.all(), config={"engine": {"tasks": 1}}) as engine:
        assert await status(await engine.start(chain("a"))) == "completed"

        def breaks(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr(submit, "begin_here", breaks)
        with pytest.raises(MemoryError):
            await engine.start(chain("a"))
        monkeypatch.undo()
        assert await status(await engine.start(chain("a"))) == "completed"


async def test_what_was_claimed_and_cannot_be_read_is_claimed_again(
    engine: TestEngine, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.desk.halt(engine.who, None)
    tasks = [await engine.start(chain("a")) for _ in range(2)]
    await engine.close()
    await engine.open()
    once(engine.store, "load_tasks", monkeypatch, Unavailable("not now"))
    await engine.desk.lift_halt()
    await engine.clock.advance("10s")
    assert [(await (await engine.get(one.id)).refresh()).status for one in tasks] == ["completed"] * 2
    assert tools.calls["a"] == 2


async def test_who_asks_for_the_result_of_a_task_that_is_gone_learns_that(engine: TestEngine) -> None:
    task = await engine.start(chain("a"))
    assert await status(await engine.get(task.id)) == "completed"
    await engine.desk.delete(task.task_id, engine.who)
    assert task.status != "completed", "an old view"
    with pytest.raises(NotFound):
        await asyncio.wait_for(task.result(), WITHIN_S)


async def test_a_durable_function_that_is_learned_late_goes_on(engine: TestEngine) -> None:
    """Its task was claimed and handed back in between: it is not passed over for ever."""
    task = await engine.start(asking)
    assert await status(task) == "paused"
    await engine.close()
    await engine.open()
    await engine.inbox.only().approve()
    await engine.clock.settle()
    task = await engine.get(task.id)
    assert task.status == "stalled", "nobody here knows how to go on"
    engine.desk.learn(asking.script)
    assert (await asyncio.wait_for(task.result(), WITHIN_S)).status == "completed"


async def test_who_cannot_be_carried_here_keeps_no_place_from_who_can(tools: Tools) -> None:
    """A claim that found as many as there was room for may have left some: also if none of them could be walked."""
    async with TestEngine(tools.all(), config={"engine": {"tasks": 1}}) as engine:
        assert await status(await engine.start(asking)) == "paused"
        await engine.close()
        await engine.open()
        await engine.desk.halt(engine.who, None)
        await engine.inbox.only().approve()
        later = await engine.start(chain("later"))
        await engine.desk.lift_halt()
        assert await status(later) == "completed"


def once(on: object, verb: str, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The first time this verb is asked, it fails."""
    real: Callable[..., Any] = getattr(on, verb)

    async def fail(*asked: Any) -> Any:
        monkeypatch.setattr(on, verb, real)
        raise error

    monkeypatch.setattr(on, verb, fail)
