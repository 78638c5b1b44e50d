"""ONE TASK, LAP BY LAP: read this first.

    settle -> start the granted calls -> wait for an end, or for somebody's command -> settle ...

Each lap is one commit: the outcomes that have come in, and the intents of what follows from them. A walk ends when
the task ends, is paused, or only waits for a time; then it holds nothing but, in the last case, the lease.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from everstep.domain.ids import Instant, StepPath
from everstep.domain.outcome import Failed, Lost, Outcome, Spawns
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import Intent, TaskState, due_at
from everstep.engine.child import cancel_children, child_ends, heed_parent, prepare
from everstep.engine.commit import HeldTask, reload, settle
from everstep.engine.invoke import invoke
from everstep.engine.judge import CUT_OFF, PAUSE_GRACE_S, Ended, cut_short, judge, may_end
from everstep.engine.kit import Kit
from everstep.engine.lost import looked_at, lost_calls
from everstep.engine.rehearse import begin_code, end_code, hear, looked_at_code
from everstep.engine.signal import Ears
from everstep.engine.tend import born, tend
from everstep.ports.clock import Timer


class Walk:
    """A held task and its calls in flight. Lives on the engine's loop."""

    def __init__(self, held: HeldTask, kit: Kit, intents: Sequence[Intent] | None = None) -> None:
        self._held = held
        self._first = intents
        self._kit = kit
        self._calls: dict[StepPath, asyncio.Task[None]] = {}
        self._ended: list[tuple[StepPath, Outcome]] = []
        self._cut: dict[StepPath, Failed | Lost] = {}
        """Calls that are being ended, and what their end means."""
        self._waiter: asyncio.Future[None] | None = None
        self._broken: asyncio.Task[None] | None = None
        """A call that died of a defect of ours: so does the walk, which would wait for its end for ever."""
        self._looked_at = Instant(0)
        self._spawning = False
        """Whether a call has ended that wants a task made."""
        self._sent_on = False
        """Whether our children have heard that we are cancelled."""
        self._ears = Ears(kit)
        self.told = False
        """A command has come that this walk has not looked at."""

    @property
    def due_at(self) -> Instant | None:
        """When there will be something to do again, if the walk left the task waiting."""
        return due_at(self._held.state)

    @property
    def state(self) -> TaskState:
        """The task as it stands; nobody else changes it."""
        return self._held.state

    @property
    def recoveries(self) -> int:
        """Counted recoveries since the last recorded outcome."""
        return self._held.state.recoveries

    @property
    def over(self) -> bool:
        """Whether it has let go of the task."""
        return self._held.over

    def tell(self) -> None:
        """A command for this task is durable: look at it again."""
        self.told = True
        self._wake()

    async def walk(self) -> None:
        """Carry the task until it ends, pauses or only waits; a deadline is looked at when it comes."""
        try:
            await (self._watched() if self._held.state.plan.durable is None else self._perform())
        finally:
            self.let_go()

    async def _perform(self) -> None:
        """The code of a durable function lives as long as its walk, and begins again with the next one."""
        try:
            await begin_code(self._held, self._kit, self._wake)
            return await self._watched()
        finally:
            end_code(self._held)

    async def _watched(self) -> None:
        deadline = self._held.state.budget.deadline
        if deadline is None:
            return await self._walk()
        timer = self._kit.clock.call_later(max(0, deadline - self._kit.clock.now()) / 1000, self.tell)
        try:
            return await self._walk()
        finally:
            timer.cancel()

    async def _walk(self) -> None:
        held, kit, ears = self._held, self._kit, self._ears
        intents = self._first
        if intents is None:
            if held.state.parent is not None:
                await heed_parent(held.state, kit)
            ended: Sequence[Ended] = await lost_calls(held, kit)
            if held.state.children:
                ended = [*ended, *await tend(held, kit)]
            if held.state.listening:
                self.told = await ears.listen(held.state) or self.told
            intents = await settle(held, ended, self._calls, kit)
        while True:
            if held.newborn:
                await born(held, kit)
            if held.state.listening or ears.open:
                self.told = await ears.listen(held.state) or self.told
            self._start(intents)
            if kit.passage.pools.kept:
                kit.passage.pools.tidy(held.lease.task)
            rests = held.code is None or await hear(held, kit)
            status = held.state.status
            if (rests and not self._calls and not self._ended and not self.told) or status not in HELD:
                return
            if status is TaskStatus.CANCELLING:
                await self._wind_up()
            elif held.state.pausing is not None or kit.passage.halted is not None:
                await self._cut_short()
            ended = await self._next()
            if held.state.timers:
                self._looked_at = kit.clock.now()
            intents = await settle(held, ended, self._calls, kit)

    def let_go(self) -> None:
        """Drop every call: the walk cannot go on, or the engine stops. Nothing more is written."""
        for call in self._calls.values():
            call.cancel()

    async def _next(self) -> Sequence[Ended]:
        """Wait until a call has ended, a command or a time has come; all ends so far go into one commit."""
        held, code = self._held, self._held.code
        if not (self._ended or self.told or self._broken or (code and code.fresh_and_quiet)):
            timer = self._timer()
            self._waiter = self._kit.loop.create_future()
            await self._waiter
            if timer is not None:
                timer.cancel()
        if self._broken is not None:
            self._broken.result()
        looked_at_code(held)
        if self.told:
            self.told = False
            await reload(held, self._kit)
            if held.state.listening:
                self.told = await self._ears.listen(held.state, again=True) or self.told
            if held.state.children:
                self._ended += await child_ends(held.state, self._kit)
        ends, self._ended = self._ended, []
        if self._spawning:
            self._spawning = False
            ends = [(path, await self._prepared(path, outcome)) for path, outcome in ends]
        return [judge(held.state, path, outcome, self._kit) for path, outcome in ends]

    def _timer(self) -> Timer | None:
        """Beside a call in flight another step's retry or wait may become due; the last lap saw those before it."""
        timers = self._held.state.timers
        due = min((at for at in timers.values() if at > self._looked_at), default=None) if timers else None
        if due is None:
            return None
        return self._kit.clock.call_later(max(0, due - self._kit.clock.now()) / 1000, self._wake)

    async def _prepared(self, path: StepPath, outcome: Outcome) -> Outcome:
        return await prepare(self._held, path, outcome, self._kit) if isinstance(outcome, Spawns) else outcome

    def _start(self, intents: Sequence[Intent]) -> None:
        for intent in intents:
            call = self._calls[intent.step] = self._kit.loop.create_task(self._call(intent))
            if self._kit.passage.pools.kept:
                self._kit.passage.pools.begun((intent.task, intent.step), call)

    async def _call(self, intent: Intent) -> None:
        """One call. It reports its own end, whatever it is: a callback would cost another turn of the loop."""
        outcome: Outcome | None = None
        try:
            outcome = await invoke(intent, self._held.state, self._kit)
        except asyncio.CancelledError:
            outcome = self._cut.get(intent.step, CUT_OFF)
            raise
        finally:
            self._on_end(intent.step, outcome)

    def _on_end(self, path: StepPath, outcome: Outcome | None) -> None:
        call = self._calls.pop(path, None)
        if call is not None:  # else it was given up, and its end is on record
            cut = self._cut.get(path) if self._cut else None
            if outcome is None:
                self._broken = call
            elif isinstance(cut, Lost) and isinstance(outcome, Failed):
                self._ended.append((path, cut))  # it may still have succeeded, but did not fail by itself
            else:
                self._spawning = self._spawning or type(outcome) is Spawns
                self._ended.append((path, outcome))
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wind_up(self) -> None:
        """The task is being cancelled: end what is in flight, but for `finally` steps whose time is not up."""
        state, now = self._held.state, self._kit.clock.now()
        if state.children and not self._sent_on:
            self._sent_on = self.told = True
            await cancel_children(state, self._kit)
        until = self._kit.finals_until(state)
        assert until is not None
        in_time = {path for path in self._calls if now < until and may_end(state, path)}
        cut = [path for path in self._calls if path not in in_time]
        await self._end_calls(cut, CUT_OFF, self._kit.limits.cancel_grace_s)
        for call in [self._calls[path] for path in in_time if path in self._calls]:
            timer = self._kit.clock.call_later((until - now) / 1000, self.tell)
            call.add_done_callback(partial(_drop, timer))

    async def _cut_short(self) -> None:
        """The task is paused, or everything halted, at once; tools that can look say what came of their calls."""
        paths, means = cut_short(self._held.state, [*self._calls], self._kit)
        await self._end_calls(paths, means, PAUSE_GRACE_S)
        ends, self._ended = self._ended, []
        seen = [(path, await looked_at(self._held.state, path, end, self._kit)) for path, end in ends]
        self._ended = [*seen, *self._ended]

    async def _end_calls(self, paths: Sequence[StepPath], means: Failed | Lost, grace_s: float) -> None:
        """Cancel these calls; what does not end within the grace time is given up as unknown."""
        calls = {path: self._calls[path] for path in paths if path in self._calls}
        if not calls:
            return
        self._cut = dict.fromkeys(calls, means)
        for call in calls.values():
            call.cancel()
        await self._grace([*calls.values()], grace_s)
        self._cut = {}
        for path in [path for path in calls if path in self._calls]:
            if self._calls.pop(path).done():  # cancelled before its first turn: it never ran, so it could not report
                self._ended.append((path, means))
                continue
            self._ended.append((path, replace(means, ended="abandoned")))
            self._kit.sink.note("call does not end", task=self._held.lease.task, step=path)

    async def _grace(self, calls: Sequence[asyncio.Task[None]], grace_s: float) -> None:
        """Wait until these calls have ended, or the grace time is up by the engine's clock."""
        up = asyncio.Event()
        timer = self._kit.clock.call_later(grace_s, up.set)
        over = asyncio.ensure_future(up.wait())
        waiting: set[asyncio.Future[Any]] = {*calls}
        while waiting and not over.done():
            ended, _ = await asyncio.wait({*waiting, over}, return_when=asyncio.FIRST_COMPLETED)
            waiting -= ended
        timer.cancel()
        over.cancel()


def _drop(timer: Timer, _call: object) -> None:
    timer.cancel()
