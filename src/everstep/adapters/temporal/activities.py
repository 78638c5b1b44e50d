"""What the workflow asks of a worker: the engine's turns and calls, with a beat for as long as they last."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from temporalio import activity

from everstep.adapters.temporal.workflow import Open, Said
from everstep.domain.ids import ELSEWHERE, Epoch, StepPath, TaskId, WorkerId
from everstep.domain.task import Lease
from everstep.ports.driver import Carried, Turn

BEATS: Final = 10
"""In the time after which a worker that says nothing is dead."""


class Activities:
    """Each is a turn of one task, and beats; a beat brings back that the call should end."""

    def __init__(self, carried: Carried, silence_s: float) -> None:
        self._carried = carried
        self._every_s = beat_s(silence_s)

    @property
    def turns(self) -> list[Callable[..., Any]]:
        """Short ones."""
        return [self.begin, self.look, self.give_up, self.cancel]

    @activity.defn(name="everstep.begin")
    async def begin(self, task: str, run: str) -> Said:
        """The run of the workflow is who holds the task."""
        return await self._beating(self._carried.begin(TaskId(task), WorkerId(ELSEWHERE + run)))

    @activity.defn(name="everstep.look")
    async def look(self, lease: list[Any]) -> Said:
        return await self._beating(self._carried.look(_lease(lease)))

    @activity.defn(name="everstep.call")
    async def call(self, lease: list[Any], step: str, attempt: int) -> Said:
        """Delivered twice, it is made once: whoever has begun it beats and answers, or Temporal gives it up."""
        return await self._beating(self._carried.call(_lease(lease), StepPath(step), attempt))

    @activity.defn(name="everstep.give_up")
    async def give_up(self, lease: list[Any], step: str, attempt: int) -> Said:
        return await self._beating(self._carried.give_up(_lease(lease), StepPath(step), attempt))

    @activity.defn(name="everstep.cancel")
    async def cancel(self, task: str) -> None:
        await self._carried.cancel(TaskId(task))

    async def _beating(self, work: Coroutine[Any, Any, Turn | None]) -> Said:
        beat = asyncio.create_task(self._beat())
        try:
            turn = await work
            if turn is None:
                activity.raise_complete_async()
            return _said(turn)
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat

    async def _beat(self) -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(self._every_s)


def beat_s(silence_s: float) -> float:
    """How often a beat is sent."""
    return min(1.0, silence_s / BEATS)


def _lease(told: list[Any]) -> Lease:
    task, epoch, worker = told
    return Lease(task=TaskId(task), epoch=Epoch(epoch), worker=WorkerId(worker))


def _said(turn: Turn) -> Said:
    return Said(
        lease=None if turn.lease is None else [turn.lease.task, turn.lease.epoch, turn.lease.worker],
        seq=turn.seq,
        over=turn.over,
        open=[Open(step=one.step, attempt=one.attempt, within_ms=one.within_ms, stop=one.stop) for one in turn.open],
        look_in_ms=turn.look_in_ms,
    )
