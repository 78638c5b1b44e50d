"""Promises and what becomes of them: looks now and then at tasks that take a while, never at those that do not.

A task that is still carried after a moment is promised what its first estimate says, if that rests on enough history.
It is looked at again a few times on its way, and when it should have ended. Nothing is polled.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from everstep.domain.commands import Drafts
from everstep.domain.errors import EverstepError
from everstep.domain.events import Draft, Promise, Who
from everstep.domain.history import HistoryKey, Kind, hour_of
from everstep.domain.ids import Instant, TaskId
from everstep.domain.schedule import off_schedule, promise_of
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.engine.control import command
from everstep.engine.kit import Kit
from everstep.engine.outlook import Outlooks
from everstep.ports.history import Observed

MOMENT_MS: Final = 1_000
"""What ends sooner is never looked at."""
PROMISED_AT_ONCE: Final = 20
"""More of them wait for the next look: an estimate takes a millisecond, and many tasks at once are busy enough."""
LOOKS: Final = (0.25, 0.5, 0.75)
"""Of the promised middle; and once when it should have ended."""


class Schedule:
    """One engine's promises about the tasks it carries."""

    def __init__(self, kit: Kit, carried: Callable[[], Sequence[TaskState]], score: Callable[[Observed], None]) -> None:
        self._kit = kit
        self._carried = carried
        self._score = score
        self.outlooks = Outlooks(kit)
        self._due: dict[TaskId, list[Instant]] = {}
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """A walk has begun or ended."""
        self._stirred.set()

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await self._wait(min((times[0] for times in self._due.values() if times), default=None))
            if self._stirred.is_set():
                self._stirred.clear()
                await self._kit.clock.sleep_until(Instant(self._kit.clock.now() + MOMENT_MS))
            try:
                await self._look()
            except EverstepError as error:
                self._kit.sink.trouble("cannot look after schedules", error)
                self._due.clear()

    async def _wait(self, due: Instant | None) -> None:
        """Until then, or until somebody stirs."""
        waits: set[asyncio.Future[object]] = {asyncio.ensure_future(self._stirred.wait())}
        if due is not None:
            waits.add(asyncio.ensure_future(self._kit.clock.sleep_until(due)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _look(self) -> None:
        states = {state.id: state for state in self._carried() if state.status is TaskStatus.RUNNING}
        for gone in [task for task in self._kit.promised if task not in states]:
            await self._hold_against(gone, self._kit.promised.pop(gone))
        self._due = {task: times for task, times in self._due.items() if task in states}
        room = PROMISED_AT_ONCE
        for task, state in states.items():
            times = self._due.get(task)
            if times is None and worked(state, self._kit.clock.now()) * 1000 >= MOMENT_MS:
                room -= 1
                if room < 0:
                    self._stirred.set()
                else:
                    await self._promise(state)
            elif times and times[0] <= self._kit.clock.now():
                self._due[task] = [at for at in times if at > self._kit.clock.now()]
                await self._judge(state)

    async def _hold_against(self, task: TaskId, promise: Promise) -> None:
        """What came of a promise: counted, if the task completed."""
        (state,) = await self._kit.store.load_tasks((task,))
        if state is None or state.status is not TaskStatus.COMPLETED or state.ended_at is None:
            return
        worked_s = worked(state, state.ended_at)
        outcome = "over" if worked_s > promise.p90 else "under" if worked_s < promise.p10 else "covered"
        key = HistoryKey(state.owner, Kind.CALIBRATION, state.plan.name, outcome, "", state.plan.name)
        self._score(Observed(key, hour_of(state.ended_at), round(worked_s * 1000)))

    async def _promise(self, state: TaskState) -> None:
        now = self._kit.clock.now()
        worked_s = worked(state, now)
        promise = promise_of(await self.outlooks.expected(state), worked_s)
        self._due[state.id] = []
        if promise is None:
            return
        self._kit.promised[state.id] = promise
        begun = now - worked_s * 1000
        ends = [begun + 1000 * share * promise.p50 for share in LOOKS]
        late = begun + 1000 * promise.p90 + 1
        self._due[state.id] = [Instant(round(at)) for at in (*ends, late) if at > now]

    async def _judge(self, state: TaskState) -> None:
        promise = self._kit.promised[state.id]
        estimate = await self.outlooks.expected(state)

        def decide(fresh: TaskState) -> tuple[Drafts, None]:
            body = off_schedule(promise, estimate, worked(fresh, self._kit.clock.now()))
            known = body is None or fresh.announced.get(body.TYPE) == fresh.generation
            if known or body is None or fresh.status is not TaskStatus.RUNNING:
                return (), None
            return (Draft(body=body),), None

        await command(state.id, Who(owner=state.owner, actor=self._kit.actor), self._kit, decide)


def worked(state: TaskState, at: Instant) -> float:
    """How long it was at work, in seconds: not while it was queued or paused."""
    return state.budget.used("wall_time", at) / 1000
