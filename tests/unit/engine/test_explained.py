"""Every state that a task goes through can be explained: each beginning of each journal, of tasks of every kind."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.explain import explain
from everstep.domain.fold import fold
from everstep.domain.ids import Seq, TaskId
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.store import TaskFilter
from everstep.ports.tool import Transient
from everstep.testing.engine import TestEngine
from everstep.wire.event import decode
from tests.unit.engine.plans import Tools
from tests.unit.explained import check_explanation

HOLD: JsonObject = {"id": "h", "tool": "test.hold"}
ECHO: JsonObject = {"id": "e", "tool": "test.echo"}
LAST: JsonObject = {"finally": [{"id": "t", "tool": "test.echo"}]}


class Scene:
    """An engine, its tools, and a task."""

    def __init__(self, engine: TestEngine, tools: Tools) -> None:
        self.engine = engine
        self.tools = tools

    async def start(self, *steps: JsonObject, **keys: JsonValue) -> TaskId:
        plan = Plan.from_dict({"name": "p", "steps": list(steps), **keys})
        plan.trusted = True
        task = await self.engine.start(plan)
        await self.past("1ms")
        return task.task_id

    async def past(self, length: str) -> None:
        for _ in range(3):
            await asyncio.sleep(0.002)  # plans are read in a thread
            await self.engine.clock.settle()
        await self.engine.clock.advance(length)

    async def answer(self, answer: str, *values: JsonValue) -> None:
        await getattr(self.engine.inbox.only(), answer)(*values)
        await self.past("1s")


Story: TypeAlias = Callable[[Scene], Coroutine[Any, Any, None]]


async def plain(scene: Scene) -> None:
    await scene.start(ECHO, {"id": "f", "tool": "test.echo"})


async def retried(scene: Scene) -> None:
    scene.tools.raises["x"] = [Transient("not now"), None]
    await scene.start({**ECHO, "with": {"label": "x"}})
    await scene.past("1m")


async def failed_with_a_last_step(scene: Scene) -> None:
    scene.tools.raises["x"] = [Transient("never")]
    await scene.start({**ECHO, "with": {"label": "x"}, "retry": {"times": 0}}, **LAST)


async def handed_over(scene: Scene) -> None:
    scene.tools.raises["x"] = [Transient("never")]
    await scene.start({**ECHO, "with": {"label": "x"}, "retry": {"times": 0}, "on_error": "pause"})
    await scene.answer("skip")


async def approved(scene: Scene) -> None:
    await scene.start({**ECHO, "approve": True})
    await scene.answer("approve")


async def asked(scene: Scene) -> None:
    await scene.start({"id": "q", "tool": "ask", "with": {"question": "Who?"}})
    await scene.answer("answer", "ana")


async def waits_for_a_time(scene: Scene) -> None:
    await scene.start({"id": "w", "tool": "wait", "with": {"for": "2d"}}, ECHO)
    await scene.past("2d")


async def waits_for_an_event(scene: Scene) -> None:
    await scene.start({"id": "w", "tool": "wait", "with": {"event": "paid", "timeout": "1d"}, "on_error": "continue"})
    await scene.past("2d")


async def a_child(scene: Scene) -> None:
    kid: JsonObject = {"name": "kid", "steps": [HOLD]}
    await scene.start({"id": "sub", "tool": "plan.run", "with": {"plan": kid}})
    await scene.past("1s")
    scene.tools.release.set()
    await scene.past("1s")


async def for_each(scene: Scene) -> None:
    await scene.start({**ECHO, "for_each": [1, 2, 3], "with": {"value": "${item}"}}, parallel=2)


async def slots(scene: Scene) -> None:
    held: JsonObject = {"tool": "test.hold", "pool": "narrow", "needs": []}
    await scene.start({"id": "a", **held}, {"id": "b", **held}, parallel=2)
    scene.tools.release.set()
    await scene.past("1s")


async def rates(scene: Scene) -> None:
    rated: JsonObject = {"tool": "test.rated", "needs": []}
    await scene.start({"id": "a", **rated}, {"id": "b", **rated}, parallel=2)
    await scene.past("1h")


async def breakers(scene: Scene) -> None:
    scene.tools.raises["x"] = [Transient("never")]
    for _ in range(2):
        await scene.start({**ECHO, "with": {"label": "x"}})
        await scene.past("5m")


async def limited(scene: Scene) -> None:
    await scene.start(ECHO, {"id": "f", "tool": "test.echo"}, limits={"calls": 1})


async def paused_and_cancelled(scene: Scene) -> None:
    task = await scene.engine.get(await scene.start(HOLD, ECHO, **LAST))
    await task.pause()
    await task.pause("immediate")
    await scene.past("5s")
    await task.resume()
    await scene.past("1s")
    await task.cancel()
    await scene.past("5m")


async def paused_in_the_queue(scene: Scene) -> None:
    await scene.engine.desk.halt(scene.engine.who, None, "graceful")
    task = await scene.engine.get(await scene.start(ECHO))
    await task.pause()
    await scene.past("48h")


async def crashed(scene: Scene) -> None:
    await scene.start({"id": "o", "tool": "test.once"}, HOLD)
    await scene.engine.crash()
    await scene.past("1s")
    await scene.answer("happened", {"label": "o"})
    await scene.engine.crash()
    await scene.past("1s")


async def reworked(scene: Scene) -> None:
    scene.tools.raises["x"] = [Transient("once"), None]
    task = await scene.engine.get(await scene.start({**ECHO, "with": {"label": "x"}, "retry": {"times": 0}}))
    await task.retry()
    await scene.past("1s")


STORIES: tuple[Story, ...] = (
    plain, retried, failed_with_a_last_step, handed_over, approved, asked, waits_for_a_time, a_child, for_each, slots,
    rates, breakers, limited, paused_and_cancelled, paused_in_the_queue, crashed, reworked,
    waits_for_an_event,
)  # fmt: skip


async def journals(engine: TestEngine) -> list[list[TaskState]]:
    """Every task, as it stood after each of its events."""
    page = await engine.desk.list(TaskFilter(limit=100))
    return [[state async for state in _states(engine, item.id)] for item in page.items]


async def _states(engine: TestEngine, task: TaskId) -> AsyncIterator[TaskState]:
    head = len([one async for one in engine.desk.events(task, Seq(0), follow=False)])
    for length in range(1, head + 1):
        state: TaskState | None = None
        async for event in engine.desk.events(task, Seq(0), follow=False):
            if event.seq <= length:
                state = fold(state, "local", decode(event.encoded))
        assert state is not None
        yield state


@pytest.mark.req("N.1")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_every_moment_of_a_task_is_explained(story: Story, tmp_path: Path) -> None:
    tools = Tools()

    @tool("test.rated", effect="pure", rate="1/1m")
    async def rated() -> int:
        return 1

    config: dict[str, JsonValue] = {"pools": {"narrow": 1}, "plans": {"dirs": [str(tmp_path)]}}
    async with TestEngine([*tools.all(), rated], config=config, workspace=tmp_path) as engine:
        await story(Scene(engine, tools))
        moments = [state for states in await journals(engine) for state in states]
        for state in moments:
            check_explanation(state)
        kinds = {on.kind for state in moments if (on := explain(state).waiting_on) is not None}
        assert kinds >= EXPECTED.get(story, {"worker"})
        tools.release.set()


EXPECTED: dict[Story, set[str]] = {
    retried: {"retry"},
    approved: {"person"},
    waits_for_a_time: {"time"},
    waits_for_an_event: {"event"},
    a_child: {"child"},
    slots: {"slot"},
    rates: {"rate"},
    breakers: {"breaker"},
    limited: {"person"},
    crashed: {"recovery", "person"},
}
"""What each story is there for."""
