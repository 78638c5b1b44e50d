"""The one workflow: a task, carried turn by turn. It sees no plan and no value, so it need not change when rules do.

    begin -> start what is open, end what should end -> wait for an end, a signal or a time -> look -> …

Decisions are made in activities, where the state is. What may never change without `workflow.patched`: the order of the
commands below; recorded histories are replayed by the suite.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType, ActivityHandle

NAME: Final = "everstep.task"
CALLS: Final = ".calls"
"""What the queue of calls is called beside that of turns: a long call never keeps a short look from its place."""
AGAIN: Final = timedelta(hours=1)
"""A hint that was lost costs at most this."""
TURN: Final = timedelta(hours=1)
MARGIN_MS: Final = 600_000
"""Our own limit ends a call; Temporal's is for what that cannot reach."""
EVENTS_MAX: Final = 4_000
"""A longer history is left behind between two calls."""
EVENTS_FULL: Final = 20_000
"""And from here on no call is begun before that is done: Temporal ends a workflow at 51,200."""
AT_ONCE: Final = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10))
NEVER: Final = RetryPolicy(maximum_attempts=1)


@dataclass
class Open:
    """A call whose intent is durable."""

    step: str
    attempt: int
    within_ms: int
    stop: bool

    @property
    def key(self) -> str:
        return f"{self.step}#{self.attempt}"


@dataclass
class Said:
    """What an activity said about a task."""

    lease: list[Any] | None = None
    seq: int = 0
    over: bool = False
    open: list[Open] = field(default_factory=list)
    look_in_ms: int | None = None


@dataclass
class Begin:
    """What a workflow is started with. `silence_s`: after so long without a beat a worker is dead."""

    task: str
    silence_s: float
    lease: list[Any] | None = None


@workflow.defn(name=NAME)
class CarriedTask:
    """One task of the store; its id is the task's."""

    @workflow.init
    def __init__(self, given: Begin) -> None:
        self._task = given.task
        self._silence = timedelta(seconds=given.silence_s)
        self._lease = given.lease
        self._told = False
        self._turn = Said()
        self._calls: dict[str, tuple[Open, ActivityHandle[Said]]] = {}
        self._ended: set[str] = set()

    @workflow.signal
    def told(self) -> None:
        """Something about this task is durable: look at it."""
        self._told = True

    @workflow.query
    def turn(self) -> Said:
        """What it does at the moment; the task itself is in the store."""
        return self._turn

    @workflow.run
    async def run(self, _given: Begin) -> str:
        while True:
            try:
                return await self._carry()
            except (asyncio.CancelledError, ActivityError) as error:
                if not is_cancelled_exception(error):
                    raise
                # somebody has cancelled it where it is carried: a command like any other
                await self._ask("cancel", self._task, gives=None)
                self._told = True

    async def _carry(self) -> str:
        while True:
            if self._turn.over:
                return "over"
            if self._lease is None:
                self._told = False
                await self._hear(await self._ask("begin", self._task, workflow.info().run_id))
            elif not self._turn.lease:
                await self._hear(await self._ask("look", self._lease))
            else:
                await self._next()
            if self._lease is None and not self._turn.over:
                self._move_on()
                await self._wait()

    async def _next(self) -> None:
        """One turn: do what was said, wait until something happens, hear what follows."""
        if not self._calls and not any(call.key in self._ended for call in self._turn.open):
            self._move_on()
        full = workflow.info().get_current_history_length() > EVENTS_FULL
        for call in self._turn.open:
            if call.key in self._calls:
                if call.stop:
                    self._calls[call.key][1].cancel()
            elif call.key in self._ended:  # and yet without an end in the store
                await self._hear(await self._ask("give_up", self._lease, call.step, call.attempt))
                return
            elif not full:
                self._start(call)
        await self._wait()
        done = [key for key, (_, handle) in self._calls.items() if handle.done()]
        for key in done:
            if key in self._calls:
                await self._end(key)
        if self._lease is not None and (self._told or not done):
            self._told = False
            await self._hear(await self._ask("look", self._lease))

    def _start(self, call: Open) -> None:
        handle = workflow.start_activity(
            "everstep.call",
            args=[self._lease, call.step, call.attempt],
            activity_id=call.key,
            task_queue=workflow.info().task_queue + CALLS,
            result_type=Said,
            start_to_close_timeout=timedelta(milliseconds=call.within_ms + MARGIN_MS),
            heartbeat_timeout=self._silence,
            retry_policy=NEVER,
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        self._calls[call.key] = (call, handle)

    async def _end(self, key: str) -> None:
        """A call has ended, or its worker has: then the effect rule says what that means."""
        call, handle = self._calls.pop(key)
        self._ended.add(key)
        try:
            said: Said | None = await handle
        except ActivityError:
            said = await self._ask("give_up", self._lease, call.step, call.attempt)
        await self._hear(said)

    async def _hear(self, said: Said | None) -> None:
        """The later word counts. A task that nobody holds has no calls."""
        assert said is not None
        if said.lease is not None and self._turn.lease is not None and said.seq < self._turn.seq:
            return
        self._turn, self._lease = said, said.lease
        if said.lease is None:
            calls, self._calls = self._calls, {}
            for _, handle in calls.values():
                handle.cancel()
            if calls:
                await workflow.wait([handle for _, handle in calls.values()])
            self._ended.clear()

    async def _wait(self) -> None:
        """Until it was told something, a call has ended, or there is something to do by itself."""
        look_in = self._turn.look_in_ms
        if look_in == 0:
            return
        longest = AGAIN if look_in is None else min(AGAIN, timedelta(milliseconds=look_in))
        handles = [handle for _, handle in self._calls.values()]
        try:
            await workflow.wait_condition(
                lambda: self._told or any(handle.done() for handle in handles), timeout=longest
            )
        except TimeoutError:
            return

    def _move_on(self) -> None:
        """A long history is left behind; the lease is taken along."""
        info = workflow.info()
        if info.is_continue_as_new_suggested() or info.get_current_history_length() > EVENTS_MAX:
            given = Begin(task=self._task, silence_s=self._silence.total_seconds(), lease=self._lease)
            workflow.continue_as_new(given)

    async def _ask(self, what: str, *args: Any, gives: type | None = Said) -> Said | None:
        """A turn that may be asked for again, of any worker."""
        given: Sequence[Any] = args
        answer: Said | None = await workflow.execute_activity(
            f"everstep.{what}",
            args=given,
            result_type=gives,
            start_to_close_timeout=TURN,
            heartbeat_timeout=self._silence,
            retry_policy=AT_ONCE,
            cancellation_type=ActivityCancellationType.ABANDON,
        )
        return answer
