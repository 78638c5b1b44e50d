"""Workload W: tasks of ten trivial asynchronous steps with about 200 bytes in and 200 out, and how they are measured.

The reference and the engine run the very same tool body and the very same lanes, so that a ratio compares nothing but
what stands between two calls of it.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

STEPS = 10
Carry = Callable[[int], Awaitable[object]]
"""Carries one task of W, given its number, to its end."""


@dataclass(frozen=True)
class Cell:
    """So many tasks at the same time, so many after each other in each lane."""

    name: str
    lanes: int
    tasks_per_lane: int

    @property
    def steps(self) -> int:
        return self.lanes * self.tasks_per_lane * STEPS


CELLS = {
    cell.name: cell for cell in (Cell("seq", 1, 200), Cell("100", 100, 20), Cell("1000", 1000, 3), Cell("rss", 100, 10))
}


@dataclass(frozen=True)
class Figures:
    """What one process measured in one cell."""

    cell: str
    steps_s: float
    cpu_ms_step: float
    p50_ms: float
    p99_ms: float
    flushes_step: float
    rss_mb: float
    loop: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def argument(step: int) -> dict[str, Any]:
    """About 200 bytes of JSON."""
    options = {"limit": 10, "lang": "en", "fuzzy": True}
    return {"tool": "search_documents", "step": step, "query": "q" * 100, "options": options}


def result(step: int) -> dict[str, Any]:
    """About 200 bytes of JSON."""
    return {"ok": True, "step": step, "items": ["a" * 40, "b" * 40, "c" * 40], "usage": {"in": 12, "out": 34}}


class Meter:
    """Sees every entry into the tool body; latency is from one entry to the next of the same task."""

    def __init__(self) -> None:
        self.entries: dict[object, list[float]] = defaultdict(list)

    def work(self, task: object, step: int) -> dict[str, Any]:
        """The body of the tool."""
        self.entries[task].append(time.perf_counter())
        return result(step)

    def latencies_ms(self) -> list[float]:
        return sorted((late - early) * 1e3 for times in self.entries.values() for early, late in pairwise(times))


async def measure(cell: Cell, carry: Carry, meter: Meter, flushes: Callable[[], int]) -> Figures:
    """Carry a cell's tasks; a short warm-up first, so that imports and caches are not counted."""
    await carry(-1)
    meter.entries.clear()
    flushed, cpu, began = flushes(), time.process_time(), time.perf_counter()

    async def lane(number: int) -> None:
        for turn in range(cell.tasks_per_lane):
            await carry(number * cell.tasks_per_lane + turn)

    await asyncio.gather(*(lane(number) for number in range(cell.lanes)))
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    entered = sum(map(len, meter.entries.values()))
    if entered != cell.steps:
        raise SystemExit(f"{entered} calls of {cell.steps}: this is not workload W")
    latencies = meter.latencies_ms()
    return Figures(
        cell=cell.name,
        steps_s=cell.steps / elapsed,
        cpu_ms_step=cpu * 1e3 / cell.steps,
        p50_ms=latencies[len(latencies) // 2],
        p99_ms=latencies[len(latencies) * 99 // 100],
        flushes_step=(flushes() - flushed) / cell.steps,
        rss_mb=rss_mb(),
        loop=type(asyncio.get_running_loop()).__module__.partition(".")[0],
    )


def rss_mb() -> float:
    """Memory of this process now, as Linux tells it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
