"""`crash_points`: a plan killed at every boundary of its way, and carried on each time.

Boundaries are the moments before and after each commit, and inside each call after its effect. Each gets a task and a
world of its own. What is asked after a crash is answered as somebody would who looks at the world; then the history is
judged by the same checker that judges real processes. No process is started and no time passes.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from everstep.adapters.stores.memory import MemoryStore
from everstep.authoring.plan import Plan
from everstep.domain.errors import NotFound, StoreRefused
from everstep.domain.pauses import UncertainOutcome
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.views import Pause, Result
from everstep.testing.crashing import Boundary, CrashingFake, CrashingStore, Cuttable
from everstep.testing.engine import TestEngine
from everstep.testing.fakes import Fake
from everstep.testing.timeline import timeline, violations

KEY: Final = "crash-point"
ROUNDS_MAX: Final = 10_000
"""Timers a task may wait for before it is said not to end."""
LOOKS_EVERY: Final = 100
"""Timers between two looks at a history in the making: a task whose journal is broken stands still for ever."""


@dataclass(slots=True)
class CrashPoint:
    """One task that was killed at one boundary, and what came of it."""

    point: str
    result: Result
    fakes: Mapping[str, Fake] = field(repr=False)
    timeline: str = field(repr=False)

    def calls(self, tool: str) -> Fake:
        """What was asked of a fake in this trial."""
        return self.fakes[tool]


async def crash_points(
    plan: Plan | str | Path,
    inputs: JsonObject | None = None,
    *,
    tools: Mapping[str, Fake],
    more_tools: Iterable[object] = (),
    approve_all: bool = False,
    answers: Mapping[str, JsonValue] | None = None,
    workspace: Path | None = None,
) -> AsyncIterator[CrashPoint]:
    """One trial per boundary; `answers` are for steps that ask. Raises AssertionError where an invariant is broken."""
    someone = Someone(approve_all=approve_all, answers=answers or {})
    trial = Trial(plan, inputs or {}, tools, tuple(more_tools), someone=someone, workspace=workspace)
    for number in count(1):
        done = await trial.play(number)
        if done is None:
            return
        yield done


@dataclass(frozen=True, slots=True)
class Someone:
    """Who answers: from the world where it can be seen, else as the test says."""

    approve_all: bool
    answers: Mapping[str, JsonValue]

    async def answer(self, pause: Pause, fakes: Mapping[str, Fake]) -> None:
        """One pause."""
        reason = pause.reason
        if isinstance(reason, UncertainOutcome):
            made = next((one.made for one in fakes.values() if reason.idempotency_key in one.made), None)
            if made is None:
                await pause.not_happened()
            else:
                await pause.happened(made[reason.idempotency_key])
        elif "approve" in pause.answers and self.approve_all:
            await pause.approve()
        elif "answer" in pause.answers and pause.step in self.answers:
            await pause.answer(self.answers[pause.step or ""])
        else:
            raise AssertionError(
                f"{pause.type} asks: {pause.title}\n  give approve_all=True, or answers={{{pause.step!r}: VALUE}}"
            )


@dataclass(slots=True)
class Trial:
    """What is tried again and again."""

    plan: Plan | str | Path
    inputs: JsonObject
    orders: Mapping[str, Fake]
    more_tools: tuple[object, ...]
    someone: Someone
    workspace: Path | None
    seed: int = 0

    async def play(self, number: int, only: str = "") -> CrashPoint | None:
        """Kill at one boundary, of those with these words, then carry on to the end; None if there are not so many."""
        boundary = Boundary(number, only)
        fakes = {tool: CrashingFake(orders, tool, boundary) for tool, orders in self.orders.items()}
        store = CrashingStore(boundary)
        more = [one.at(boundary) if isinstance(one, Cuttable) else one for one in self.more_tools]
        engine = TestEngine(fakes, seed=self.seed, store=store, workspace=self.workspace, more_tools=more)
        async with engine:
            busy = [one for one in more if isinstance(one, Cuttable)]
            await self._carry(engine, fakes, boundary, busy)
            if boundary.reached is None:
                return None
            await engine.crash()
            result = await self._carry(engine, fakes, None, busy, killed_at=boundary.reached)
            assert result is not None
            await _look(store, boundary.reached)
            return CrashPoint(point=boundary.reached, result=result, fakes=fakes, timeline=await timeline(store))

    async def _carry(
        self,
        engine: TestEngine,
        fakes: Mapping[str, Fake],
        boundary: Boundary | None,
        real: Sequence[Cuttable],
        *,
        killed_at: str | None = None,
    ) -> Result | None:
        """Until the task has ended, or the boundary is reached: then None."""
        acting = asyncio.create_task(self._to_the_end(engine, fakes))
        for number in range(1, ROUNDS_MAX):
            await engine.clock.settle()
            if acting.done():
                try:
                    return await acting
                except StoreRefused:  # of a journal that nobody can read
                    await _look(engine.store, killed_at)
                    raise
            if boundary is not None and boundary.reached is not None:
                acting.cancel()
                await asyncio.gather(acting, return_exceptions=True)
                return None
            if any(one.busy for one in real) or not await engine.clock.skip():
                await asyncio.sleep(0.001)  # something works where the virtual clock does not reach
            if number % LOOKS_EVERY == 0:
                await _look(engine.store, killed_at)
        acting.cancel()
        raise AssertionError(f"the task does not end:\n{await timeline(engine.store)}")

    async def _to_the_end(self, engine: TestEngine, fakes: Mapping[str, Fake]) -> Result:
        try:
            task = await engine.get(KEY)
        except NotFound:
            task = await engine.start(self.plan, self.inputs, key=KEY)
        while True:
            result = await task.result(on_pause="return")
            if result.status in ("completed", "failed", "cancelled"):
                return result
            for pause in engine.inbox.all:
                await self.someone.answer(pause, fakes)
            await task.refresh()


async def _look(store: MemoryStore, killed_at: str | None) -> None:
    """Raises AssertionError for a history that breaks a rule."""
    if broken := await violations(store):
        where = "before any crash" if killed_at is None else f"killed at {killed_at}"
        raise AssertionError("\n".join([f"{where}:", *map(str, broken), await timeline(store)]))
