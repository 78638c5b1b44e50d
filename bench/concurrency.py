"""Many tasks, few places: 50 tasks of 10 steps with room for 3, then for 20.

    python -m bench.concurrency

Overhead is the time between the end of a call and the beginning of the next one of its task, both flushes included; a
switch is the time between the end of a task and the first call of the one that takes its place. Exit 1 where a target
is missed.
"""

import asyncio
import json
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.kept import Figure, at_most, keep
from everstep import Ctx, Engine, Plan, tool

TARGETS = {"overhead_p50_ms": 20.0, "switch_p95_ms": 200.0}
NAP_S = 0.005

Spans = dict[str, list[tuple[float, float]]]


async def measure(folder: Path, places: int, tasks: int = 50, steps: int = 10) -> Spans:
    """When each call of each task began and ended."""
    spans: Spans = {}

    @tool.pure("bench.nap")
    async def nap(*, ctx: Ctx) -> None:
        """Hardly anything."""
        began = time.monotonic()
        await asyncio.sleep(NAP_S)
        spans.setdefault(ctx.task_id, []).append((began, time.monotonic()))

    said: list[Any] = [{"id": f"s{n}", "tool": "bench.nap"} for n in range(steps)]
    plan = Plan.from_dict({"name": "bench", "steps": said})
    async with Engine(folder / f"{places}.db", tools=[nap], config={"engine.tasks": places}) as engine:
        started = [await engine.start(plan) for _ in range(tasks)]
        ends = [await one.result() for one in started]
    assert all(one.status == "completed" for one in ends)
    return spans


def at_once(spans: Spans) -> int:
    """How many tasks were under way together, at most."""
    edges = sorted(edge for calls in spans.values() for edge in ((calls[0][0], 1), (calls[-1][1], -1)))
    most = now = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most


def figures(spans: Spans, places: int) -> dict[str, float]:
    """In milliseconds."""
    between = [(later[0] - before[1]) * 1000 for calls in spans.values() for before, later in pairwise(calls)]
    firsts = sorted(calls[0][0] for calls in spans.values())[places:]
    lasts = sorted(calls[-1][1] for calls in spans.values())
    switches = [(first - last) * 1000 for first, last in zip(firsts, lasts, strict=False)]
    return {
        "places": places,
        "at_once": at_once(spans),
        "overhead_p50_ms": round(median(between), 2),
        "overhead_p95_ms": round(quantiles(between, n=20)[-1], 2),
        "switch_p50_ms": round(median(switches), 2),
        "switch_p95_ms": round(quantiles(switches, n=20)[-1], 2),
    }


def main() -> int:
    missed = 0
    kept: list[Figure] = []
    for places in (3, 20):
        with tempfile.TemporaryDirectory(prefix="es-") as folder:
            found = figures(asyncio.run(measure(Path(folder), places)), places)
        print(json.dumps(found))
        kept += [at_most(f"{name} at {places} places", found[name], most) for name, most in TARGETS.items()]
        for name, most in TARGETS.items():
            if found[name] > most:
                missed += 1
                print(f"missed: {name}: {found[name]}, at most {most:g}", file=sys.stderr)
        missed += found["at_once"] > places
    keep("50 tasks of 10 steps on few places", "python -m bench.concurrency", kept)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
