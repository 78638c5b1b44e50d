"""The call of an attempt, in whatever process was asked to make it: its place in a pool, its end, its being cut off.

Two may be asked to make the same one: a mark in the store lets the first through (`Marks.begin`).
"""

import asyncio
from dataclasses import replace
from typing import Literal, TypeAlias

from everstep.domain.consequence import spec_of
from everstep.domain.ids import StepPath
from everstep.domain.outcome import Failed, Lost, Outcome
from everstep.domain.states import TaskStatus
from everstep.domain.task import Intent, Lease, TaskState
from everstep.engine.invoke import invoke
from everstep.engine.judge import CUT_OFF, NEVER_CALLED, PAUSE_GRACE_S, cut_short
from everstep.engine.kit import Kit
from everstep.engine.lost import looked_at

NotMade: TypeAlias = Literal["before", "gone"]
"""Somebody else has begun this call; or whoever wanted it does not hold the task any more."""


class Calls:
    """Those under way in this process."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._slots: dict[str, asyncio.Semaphore] = {}
        self.count = 0

    async def make(self, state: TaskState, intent: Intent) -> Outcome | NotMade:
        """What came of it, if it is made here.

        Cancelled by somebody whom the task knows nothing of, it says so and nothing else.
        """
        kit = self._kit
        entry = kit.catalog.find(intent.attempt.tool)
        if entry is None:
            return NEVER_CALLED
        pool = spec_of(state, intent.step).pool or entry.spec.pool
        if pool is None:
            return await self._make(state, intent)
        async with self._slots.setdefault(pool, asyncio.Semaphore(kit.passage.pools.size(pool))):
            return await self._make(state, intent)

    async def forgo(self, lease: Lease, state: TaskState, step: StepPath, attempt: int) -> Outcome:
        """Nobody answers for it. If nobody has begun it, nobody ever will; else see what its tool knows."""
        if await self._kit.store.marks.begin(lease, step, attempt) == "now":
            return NEVER_CALLED
        return await looked_at(state, step, Lost(), self._kit)

    async def _make(self, state: TaskState, intent: Intent) -> Outcome | NotMade:
        attempt = intent.attempt
        lease = Lease(task=intent.task, epoch=attempt.epoch, worker=attempt.worker)
        begun = await self._kit.store.marks.begin(lease, intent.step, attempt.number)
        if begun != "now":
            return begun
        call = self._kit.loop.create_task(invoke(intent, state, self._kit))
        self.count += 1
        try:
            await asyncio.wait((call,))
            return call.result()
        except asyncio.CancelledError:
            return await self._cut(intent, call)
        finally:
            self.count -= 1

    async def _cut(self, intent: Intent, call: "asyncio.Task[Outcome]") -> Outcome:
        """End this call, and say what that means; if nobody asked for it, its driver gives it up."""
        call.cancel()
        (state,) = await self._kit.store.load_tasks((intent.task,))
        means, grace_s = self._meaning(state, intent.step)
        await asyncio.wait((call,), timeout=grace_s)
        if means is None or state is None:
            raise asyncio.CancelledError
        if not call.done():
            self._kit.sink.note("call does not end", task=intent.task, step=intent.step)
            return replace(means, ended="abandoned")
        outcome = means if call.cancelled() else call.result()
        if isinstance(means, Lost) and isinstance(outcome, Failed):
            outcome = means  # it may still have succeeded, but did not fail by itself
        return await looked_at(state, intent.step, outcome, self._kit)

    def _meaning(self, state: TaskState | None, step: StepPath) -> tuple[Failed | Lost | None, float]:
        if state is not None and state.status is TaskStatus.CANCELLING:
            return CUT_OFF, self._kit.limits.cancel_grace_s
        if state is not None:
            paths, means = cut_short(state, [step], self._kit)
            if step in paths:
                return means, PAUSE_GRACE_S
        return None, PAUSE_GRACE_S
