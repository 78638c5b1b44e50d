"""An adapter in an engine that is killed at every boundary of a call."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from everstep.domain.pauses import UncertainOutcome
from everstep.domain.plan import Effect
from everstep.facade.views import Pause
from everstep.testing.boundaries import Someone, Trial
from everstep.testing.conformance.sample import Bench
from everstep.testing.conformance.tried import Tried, ended, engine_of, plan_of
from everstep.testing.fakes import Fake

SLOW_S: Final = 0.25
"""A tool that takes longer is killed inside its call only."""


@dataclass(frozen=True, slots=True)
class Watcher(Someone):
    """Answers what a crash leaves open, and remembers that it was asked."""

    asked: list[str] = field(default_factory=list)

    async def answer(self, pause: Pause, fakes: Mapping[str, Fake]) -> None:
        """It did not happen: whoever must not repeat has asked first."""
        if isinstance(pause.reason, UncertainOutcome):
            self.asked.append(pause.type)
        await Someone.answer(self, pause, fakes)


async def killed(bench: Bench) -> Sequence[str]:
    """Killed at every boundary, it ends as if nothing had been; only what must not be repeated is asked about."""
    problems = []
    for sample in bench.fitting():
        effect = bench.call(sample).effect
        began = time.perf_counter()
        tried = Tried(bench.adapter)
        async with engine_of(bench, tried) as engine:
            usual = await ended(engine, tried, plan_of(sample))
        slow = time.perf_counter() - began > SLOW_S
        for number in count(1):
            someone, tried = Watcher(approve_all=True, answers={}), Tried(bench.adapter)
            trial = Trial(plan_of(sample), {}, {}, (tried,), someone=someone, workspace=bench.folder, seed=bench.seed())
            point = await trial.play(number, only="inside the call" if slow else "")
            if point is None:
                break
            told = f"{sample.tool}, killed {point.point}"
            if point.result.status != usual.status:
                problems.append(f"{told}: ended as {point.result.status}, not {usual.status}")
            if someone.asked and effect in (Effect.PURE, Effect.IDEMPOTENT):
                problems.append(f"{told}: asked whether it happened, though it is '{effect}'")
            inside = "inside the call" in point.point
            if inside and effect is Effect.ONCE and len(tried.calls) > 1 and not someone.asked:
                problems.append(f"{told}: was called again without a question")
    return problems
