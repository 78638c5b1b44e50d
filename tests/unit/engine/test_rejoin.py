"""A worker that lost its lease comes back as somebody new: once, however often it is told."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import pytest

from everstep.adapters.stores.memory import MemoryStore
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.ports.news import Heard, Slots, Unclaimed
from everstep.ports.worker import Worker
from everstep.testing.engine import TestEngine


class Slow:
    """Others say nothing; joining again takes until somebody lets it."""

    refused = 0

    def __init__(self) -> None:
        self.joined: list[WorkerId] = []
        self.let = asyncio.Event()

    @property
    def slots(self) -> Slots:
        return cast("Slots", self)  # no pool is shared, so nobody asks

    def tell(self, task: TaskId) -> None: ...

    async def wait(self, within_s: float) -> Heard:
        await asyncio.Event().wait()
        return Heard()

    async def told(self, worker: WorkerId) -> Mapping[TaskId, int]:
        return {}

    async def heads(self, tasks: Collection[TaskId]) -> Mapping[TaskId, Seq]:
        return {}

    async def unclaimed(self, before: Instant) -> Sequence[Unclaimed]:
        return []

    async def rejoin(self, worker: Worker) -> None:
        self.joined.append(worker.id)
        await self.let.wait()


async def test_who_is_told_twice_joins_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, others = MemoryStore(), Slow()
    monkeypatch.setattr(store, "news", others)
    async with TestEngine([], store=store) as engine:
        runtime, before = engine.desk._runtime, engine.desk._kit.worker
        ready = []
        for _ in range(2):
            runtime._lose()
            await engine.clock.advance("1ms")
            ready.append(engine.desk.gate.ready)
        others.let.set()
        await engine.clock.advance("1ms")
        assert [*ready, engine.desk.gate.ready] == [False, False, True]
        assert others.joined == [engine.desk._kit.worker] != [before]
