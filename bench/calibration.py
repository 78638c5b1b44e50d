"""Are estimates right as often as they say? Tasks whose calls take times of known distributions, in virtual time.

`python -m bench.calibration` plays 2,000 tasks; the suite plays 500 of the same.
"""

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.kept import Figure, keep
from everstep import Plan
from everstep.domain.values import JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import Transient
from everstep.testing import TestEngine, fake
from everstep.testing.fakes import Fake

TARGET = (0.75, 0.85)
"""The share of tasks that the 80 % interval has to cover."""
LEARNED = 100
"""Tasks of each plan before anything is counted."""
WAVE = 50
MINUTES_MAX = 30
CALLS = 6_000
DISTRIBUTIONS: Mapping[str, Callable[[random.Random], float]] = {
    "lognormal": lambda draw: draw.lognormvariate(0.5, 0.6),
    "bimodal": lambda draw: draw.gauss(0.8, 0.08) if draw.random() < 0.7 else draw.gauss(5.0, 0.5),
    "heavy": lambda draw: min(50.0, 0.5 * draw.paretovariate(2.0)),
    "flaky": lambda draw: draw.uniform(0.5, 2.0),
}
FAILS = {"flaky": 0.15}


@dataclass
class Score:
    """How often the interval held, and how far the middle was off."""

    covered: int = 0
    n: int = 0
    errors: list[float] | None = None

    def add(self, low: float, middle: float, high: float, real: float) -> None:
        """One more task."""
        self.n += 1
        self.covered += low <= real <= high
        self.errors = [*(self.errors or []), abs(middle - real) / real]

    @property
    def share(self) -> float:
        """Of tasks that ended within their interval."""
        return self.covered / self.n

    def json(self) -> dict[str, JsonValue]:
        """As a figure."""
        return {"n": self.n, "covered": self.covered, "share": self.share, "median_error": median(self.errors or [0])}


def plans() -> dict[str, Plan]:
    """One of each distribution, one with all of them in turn, one with branches at the same time."""
    made = {name: _plan(name, [name] * 3) for name in DISTRIBUTIONS}
    made["mixed"] = _plan("mixed", [*DISTRIBUTIONS])
    branches: list[JsonValue] = [
        {"id": f"{name}{turn}", "tool": name, "needs": [f"{name}{turn - 1}"] if turn else []}
        for name in DISTRIBUTIONS
        for turn in range(2)
    ]
    made["branches"] = Plan.from_dict({"name": "branches", "parallel": 3, "steps": branches})
    return made


def _plan(name: str, tools: list[str]) -> Plan:
    steps: list[JsonValue] = [{"id": f"s{at}", "tool": tool} for at, tool in enumerate(tools)]
    return Plan.from_dict({"name": name, "steps": steps})


def tools(seed: int) -> dict[str, Fake]:
    """Fakes that take as long as they happen to."""
    made = {}
    for name, drawn in DISTRIBUTIONS.items():
        draw = random.Random(f"{name} {seed}")
        times = [f"{max(1, round(1000 * drawn(draw)))}ms" for _ in range(CALLS)]
        raises = [Transient("down") if draw.random() < FAILS.get(name, 0.0) else None for _ in range(CALLS)]
        made[name] = fake(returns=1, delay=times, raises=[*raises], effect="pure")
    return made


async def calibrate(tasks: int, seed: int = 1) -> dict[str, Score]:
    """So many tasks, evenly of each plan, held against their first estimates."""
    scores = {name: Score() for name in plans()}
    config: dict[str, JsonValue] = {"breaker": {"failures": 1000, "share": 1.0}, "engine": {"tasks": WAVE}}
    engine = TestEngine(tools(seed), seed=seed, config=config)
    async with engine:
        for name, plan in plans().items():
            await _wave(engine, plan, LEARNED, None)
            left = -(-tasks // len(scores))
            while left > 0:
                await _wave(engine, plan, min(WAVE, left), scores[name])
                left -= WAVE
    return scores


async def _wave(engine: TestEngine, plan: Plan, count: int, score: Score | None) -> None:
    begun = [await engine.start(plan) for _ in range(count)]
    estimate = (await begun[0].refresh()).estimate  # all of a wave begin alike: the same plan, the same history
    ends = asyncio.gather(*(task.result() for task in begun))
    for _ in range(MINUTES_MAX * 6):
        if ends.done():
            break
        await engine.clock.advance("10s")
    await asyncio.wait_for(ends, 5)
    await engine.clock.advance("6s")
    if score is None:
        return
    assert estimate is not None
    assert estimate.p10 is not None
    assert estimate.p50 is not None
    assert estimate.p90 is not None
    for task in begun:
        score.add(estimate.p10, estimate.p50, estimate.p90, _took_s(task, engine))


def _took_s(task: Task, engine: TestEngine) -> float:
    row = engine.store._tasks[task.task_id].row
    assert row.started_at is not None
    assert row.ended_at is not None
    return (row.ended_at - row.started_at) / 1000


def together(scores: Mapping[str, Score]) -> Score:
    """Of all plans."""
    whole = Score()
    for score in scores.values():
        whole.covered += score.covered
        whole.n += score.n
        whole.errors = [*(whole.errors or []), *(score.errors or [])]
    return whole


def main() -> int:
    """Play, print, and fail outside the target."""
    parser = argparse.ArgumentParser(prog="bench.calibration", description=__doc__)
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    scores = asyncio.run(calibrate(given.tasks, given.seed))
    whole = together(scores)
    print(json.dumps({**{name: score.json() for name, score in scores.items()}, "all": whole.json()}, indent=1))
    told = f"{whole.share:.1%} of {whole.n:,} tasks"
    held = TARGET[0] <= whole.share <= TARGET[1]
    figures = [
        Figure("ended within their 80 % interval", told, f"{TARGET[0]:.0%} to {TARGET[1]:.0%}", held),
        Figure("the middle was off by (median)", f"{whole.json()['median_error']:.1%}"),
    ]
    keep("Estimates", "python -m bench.calibration", figures, {name: score.json() for name, score in scores.items()})
    return 0 if TARGET[0] <= whole.share <= TARGET[1] else 1


if __name__ == "__main__":
    raise SystemExit(main())
