"""How often an engine looks after others."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import pytest

from everstep import Plan, tool
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.engine.feed import Notice
from everstep.engine.upkeep.neighbours import Neighbours
from everstep.ports.news import Heard, Slots, Unclaimed
from everstep.ports.worker import Worker
from everstep.testing.engine import TestEngine


class Quiet:
    """Nobody says anything; whoever waits is told so at the end of his wait."""

    refused = 0

    def __init__(self, engine: TestEngine, most: int) -> None:
        self._engine = engine
        self._most = most
        self.waits: list[float] = []
        self.spoken_of: dict[TaskId, int] = {}
        self.asked: list[TaskId] = []

    @property
    def slots(self) -> Slots:
        return cast("Slots", self)  # no pool is shared, so nobody asks

    def tell(self, task: TaskId) -> None: ...

    async def wait(self, within_s: float) -> Heard:
        self.waits.append(within_s)
        await self._engine.clock.advance(f"{round(within_s * 1000)}ms")
        self._engine.desk._kit.closing = len(self.waits) == self._most
        return Heard(listening=True)

    async def told(self, worker: WorkerId | None) -> Mapping[TaskId, int]:
        return self.spoken_of

    async def heads(self, tasks: Collection[TaskId]) -> Mapping[TaskId, Seq]:
        self.asked += tasks
        return {}

    async def unclaimed(self, before: Instant) -> Sequence[Unclaimed]:
        return [Unclaimed(task=TaskId("t_rare"), owner="local", missing=("rare.tool",))] if before > 0 else []

    async def rejoin(self, worker: Worker) -> None: ...


@pytest.mark.req("WF-28")
async def test_a_quiet_fleet_is_swept_as_often_as_the_settings_say() -> None:
    """Hints that come do not make the sweep wait for the next look, which would be seconds later."""
    async with TestEngine([], config={"engine": {"janitor": "1s"}}) as engine:
        news = Quiet(engine, most=8)
        await Neighbours(engine.desk._kit, engine.desk._runtime.loop, news, carries=True).watch()
        assert max(news.waits[1:]) <= 1.2
        engine.desk._kit.closing = False


async def test_what_nobody_can_carry_is_reported_once() -> None:
    async with TestEngine([], config={"engine": {"janitor": "10s"}}) as engine:
        told: list[Notice] = []
        engine.desk._kit.feed.hear(told.append)
        await Neighbours(engine.desk._kit, engine.desk._runtime.loop, Quiet(engine, most=40), carries=True).watch()
        said = [fields for event, fields in engine.sink.notes if event == "no worker can carry this task"]
        assert said == [{"level": "warning", "task": "t_rare", "missing": ["rare.tool"]}]
        assert [(one.topic, one.owner) for one in told if one.topic == "tool"] == [("tool", "local")]
        engine.desk._kit.closing = False


async def test_a_task_that_walks_here_is_looked_for_only_once_others_have_spoken_of_it() -> None:
    """Or else every watcher of every task would read its journal again and again."""
    began, go_on = asyncio.Event(), asyncio.Event()

    @tool("slow.call", effect="pure")
    async def slow() -> None:
        began.set()
        await go_on.wait()

    plan = Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "slow.call"}]})
    async with TestEngine([slow]) as engine:
        task = TaskId((await engine.start(plan)).id)
        await began.wait()
        watching = engine.desk._kit.feed.join(task)
        for spoken_of, asked in (({}, []), ({task: 1}, [task])):
            news = Quiet(engine, most=1)
            news.spoken_of = spoken_of
            neighbours = Neighbours(engine.desk._kit, engine.desk._runtime.loop, news, carries=True)
            await neighbours._look(Heard(listening=True))
            assert news.asked == asked
        watching.close()
        go_on.set()
