"""How often an engine looks after others."""

from collections.abc import Collection, Mapping

import pytest

from everstep.domain.ids import Seq, TaskId, WorkerId
from everstep.engine.upkeep.neighbours import Neighbours
from everstep.ports.news import Heard
from everstep.ports.worker import Worker
from everstep.testing.engine import TestEngine


class Quiet:
    """Nobody says anything; whoever waits is told so at the end of his wait."""

    refused = 0

    def __init__(self, engine: TestEngine, most: int) -> None:
        self._engine = engine
        self._most = most
        self.waits: list[float] = []

    def tell(self, task: TaskId) -> None: ...

    async def wait(self, within_s: float) -> Heard:
        self.waits.append(within_s)
        await self._engine.clock.advance(f"{round(within_s * 1000)}ms")
        self._engine.desk._kit.closing = len(self.waits) == self._most
        return Heard(listening=True)

    async def told(self, worker: WorkerId) -> Mapping[TaskId, int]:
        return {}

    async def heads(self, tasks: Collection[TaskId]) -> Mapping[TaskId, Seq]:
        return {}

    async def rejoin(self, worker: Worker) -> None: ...


@pytest.mark.req("WF-28")
async def test_a_quiet_fleet_is_swept_as_often_as_the_settings_say() -> None:
    """Hints that come do not make the sweep wait for the next look, which would be seconds later."""
    async with TestEngine([], config={"engine": {"janitor": "1s"}}) as engine:
        news = Quiet(engine, most=8)
        await Neighbours(engine.desk._kit, engine.desk._runtime.loop, news, carries=True).watch()
        assert max(news.waits[1:]) <= 1.2
        engine.desk._kit.closing = False
