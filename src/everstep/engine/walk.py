"""ONE TASK, LAP BY LAP: read this first.

    settle -> start the granted calls -> wait for an end, or for somebody's command -> settle ...

Each lap is one commit: the outcomes that have come in, and the intents of what follows from them. A walk ends when
the task ends, is paused, or only waits for a time; then it holds nothing but, in the last case, the lease.
"""

import asyncio
from collections.abc import Sequence

from everstep.domain.decide import is_final, spec_of
from everstep.domain.ended import Ended
from everstep.domain.ids import Instant, StepPath
from everstep.domain.outcome import Outcome
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import Intent, due_at
from everstep.engine.commit import HeldTask, reload, settle
from everstep.engine.invoke import invoke
from everstep.engine.judge import CUT_OFF, GIVEN_UP, judge
from everstep.engine.kit import Kit
from everstep.engine.lost import lost_calls
from everstep.ports.clock import Timer


class Walk:
    """A held task and its calls in flight. Lives on the engine's loop."""

    def __init__(self, held: HeldTask, kit: Kit, intents: Sequence[Intent] | None = None) -> None:
        self._held = held
        self._first = intents
        self._kit = kit
        self._calls: dict[StepPath, asyncio.Task[None]] = {}
        self._ended: list[tuple[StepPath, Outcome]] = []
        self._waiter: asyncio.Future[None] | None = None
        self._looked_at = Instant(0)
        self.told = False
        """A command has come that this walk has not looked at."""

    @property
    def due_at(self) -> Instant | None:
        """When there will be something to do again, if the walk left the task waiting."""
        return due_at(self._held.state)

    @property
    def recoveries(self) -> int:
        """Counted recoveries since the last recorded outcome."""
        return self._held.state.recoveries

    def tell(self) -> None:
        """A command for this task is durable: look at it again."""
        self.told = True
        self._wake()

    async def walk(self) -> None:
        """Carry the task until it ends, pauses or only waits."""
        intents = self._first
        if intents is None:
            ended: Sequence[Ended] = await lost_calls(self._held, self._kit)
            intents = await settle(self._held, ended, self._calls, self._kit)
        while True:
            self._start(intents)
            done = not self._calls and not self._ended and not self.told
            if done or self._held.state.status not in HELD:
                return
            if self._held.state.status is TaskStatus.CANCELLING:
                await self._end_calls()
            ended = await self._next()
            self._looked_at = self._kit.clock.now()
            intents = await settle(self._held, ended, self._calls, self._kit)

    async def stop(self, grace_s: float) -> None:
        """Planned stop: let calls end for a while; the rest is left to recovery and the effect rule."""
        if self._calls:
            await asyncio.wait(self._calls.values(), timeout=grace_s)

    def let_go(self) -> None:
        """Drop every call: the lease is gone, or the engine stops. Nothing more is written."""
        for call in self._calls.values():
            call.cancel()

    async def _next(self) -> Sequence[Ended]:
        """Wait until a call has ended, a command or a time has come; all ends so far go into one commit."""
        if not self._ended and not self.told:
            timer = self._timer()
            self._waiter = self._kit.loop.create_future()
            await self._waiter
            if timer is not None:
                timer.cancel()
        if self.told:
            self.told = False
            await reload(self._held, self._kit)
        ends, self._ended = self._ended, []
        return [judge(self._held.state, path, outcome, self._kit) for path, outcome in ends]

    def _timer(self) -> Timer | None:
        """Beside a call in flight another step's retry or wait may become due; the last lap saw those before it."""
        timers = self._held.state.timers
        due = min((at for at in timers.values() if at > self._looked_at), default=None) if timers else None
        if due is None:
            return None
        return self._kit.clock.call_later(max(0, due - self._kit.clock.now()) / 1000, self._wake)

    def _start(self, intents: Sequence[Intent]) -> None:
        for intent in intents:
            self._calls[intent.step] = self._kit.loop.create_task(self._call(intent))

    async def _call(self, intent: Intent) -> None:
        """One call. It reports its own end: a callback would cost another turn of the loop."""
        try:
            outcome = await invoke(intent, self._held.state, self._kit)
        except asyncio.CancelledError:
            self._on_end(intent.step, CUT_OFF)
            raise
        self._on_end(intent.step, outcome)

    def _on_end(self, path: StepPath, outcome: Outcome) -> None:
        if self._calls.pop(path, None) is not None:  # else it was given up, and its end is on record
            self._ended.append((path, outcome))
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _end_calls(self) -> None:
        """Cancel what is in flight, but not `finally`; what does not end within the grace time is given up."""
        state = self._held.state
        ending = {path: call for path, call in self._calls.items() if not is_final(state, spec_of(state, path))}
        for call in ending.values():
            call.cancel()
        if ending:
            await asyncio.wait(ending.values(), timeout=self._kit.limits.cancel_grace_s)
        for path, call in ending.items():
            if self._calls.pop(path, None) is None:
                continue
            if call.done():  # cancelled before its first turn: it never ran, so it could not report
                self._ended.append((path, CUT_OFF))
                continue
            self._ended.append((path, GIVEN_UP))
            self._kit.sink.note("call does not end", task=self._held.lease.task, step=path)
