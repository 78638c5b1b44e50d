"""ONE TASK, LAP BY LAP: read this first.

    settle -> start the granted calls -> wait for an end, or for somebody's command -> settle ...

Each lap is one commit: the outcomes that have come in, and the intents of what follows from them. A walk ends when
the task ends, is paused, or only waits for a time; then it holds nothing but, in the last case, the lease.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from everstep.domain.decide import Ended, is_final, spec_of
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, Millis, StepPath
from everstep.domain.outcome import Failed, Outcome
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import Intent, due_at
from everstep.engine.commit import HeldTask, reload, settle
from everstep.engine.invoke import Surroundings, invoke
from everstep.engine.kit import Kit
from everstep.engine.recover import judge, lost_calls
from everstep.ports.clock import Timer

_CANCELLED = Failure(
    code="cancelled",
    category=Category.LOGIC,
    message="the call was cut off because the task was cancelled",
    what_to_do="look whether it had an effect",
    effect_state=EffectState.UNKNOWN,
)
_CUT_OFF = Failed(failure=_CANCELLED, ended="killed")


class Walk:
    """A held task and its calls in flight. Lives on the engine's loop."""

    def __init__(self, held: HeldTask, kit: Kit, intents: Sequence[Intent] | None = None) -> None:
        self._held = held
        self._first = intents
        self._kit = kit
        self._calls: dict[StepPath, asyncio.Task[Outcome]] = {}
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
            call = self._kit.loop.create_task(invoke(intent, self._surroundings(intent), self._kit))
            self._calls[intent.step] = call
            call.add_done_callback(partial(self._on_end, intent.step))

    def _on_end(self, path: StepPath, call: asyncio.Task[Outcome]) -> None:
        if self._calls.get(path) is not call:
            return
        del self._calls[path]
        self._ended.append((path, _CUT_OFF if call.cancelled() else call.result()))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _end_calls(self) -> None:
        """Cancel what is in flight, but for `finally`; what does not end in its grace time is given up as unknown."""
        state = self._held.state
        ending = {path: call for path, call in self._calls.items() if not is_final(state, spec_of(state, path))}
        for call in ending.values():
            call.cancel()
        if ending:
            await asyncio.wait(ending.values(), timeout=self._kit.limits.cancel_grace_s)
        for path in ending:
            if self._calls.pop(path, None) is not None:
                self._ended.append((path, Failed(failure=_CANCELLED, ended="abandoned")))
                self._kit.sink.note("call does not end", task=self._held.lease.task, step=path)

    def _surroundings(self, intent: Intent) -> Surroundings:
        state, kit = self._held.state, self._kit
        spec = spec_of(state, intent.step)
        tool = kit.catalog.get(intent.tool).spec
        timeout = spec.timeout_ms or state.plan.defaults.timeout_ms or tool.timeout_ms or kit.limits.step_timeout_ms
        return Surroundings(
            owner=state.owner,
            workspace=state.workspace,
            answer=state.steps[intent.step].answer,
            timeout_ms=Millis(timeout),
        )
