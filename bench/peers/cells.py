"""How a peer's cell is measured, in its own process: only the standard library and the peer are there."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from bench.workload import Carry, Cell, Meter, argument, rss_mb

CELLS = {cell.name: cell for cell in (Cell("seq", 1, 20), Cell("100", 100, 2))}
WITHIN_S = float(os.environ.get("BENCH_WITHIN_S", "60"))

meter = Meter()


async def work(task: str, request: dict[str, object]) -> dict[str, object]:
    """The tool: what every engine is to call."""
    step = request["step"]
    assert isinstance(step, int)
    return meter.work(task, step)


def request(step: int) -> dict[str, object]:
    """What it is called with."""
    return argument(step)


async def measure(cell: Cell, carry: Carry) -> dict[str, object]:
    """Warm up with one task; then carry the cell's tasks, or as many as there is time for."""
    await carry(-1)
    meter.entries.clear()
    cpu, began = time.process_time(), time.perf_counter()
    ends = began + WITHIN_S

    async def lane(number: int) -> None:
        for turn in range(cell.tasks_per_lane):
            if time.perf_counter() < ends:
                await carry(number * cell.tasks_per_lane + turn)

    whole = asyncio.gather(*(lane(number) for number in range(cell.lanes)))
    with suppress(TimeoutError):
        await asyncio.wait_for(whole, WITHIN_S)
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    steps = sum(map(len, meter.entries.values()))
    latencies = meter.latencies_ms()
    return {
        "cell": cell.name,
        "steps": steps,
        "cut": steps < cell.steps,
        "steps_s": steps / elapsed,
        "cpu_ms_step": cpu * 1e3 / max(1, steps),
        "p50_ms": latencies[len(latencies) // 2] if latencies else None,
        "p99_ms": latencies[len(latencies) * 99 // 100] if latencies else None,
        "rss_mb": rss_mb(),
    }


def told(figures: dict[str, object]) -> None:
    """To whoever started this process."""
    print(f"FIGURES {json.dumps(figures)}", flush=True)


def main(perform: Callable[[Cell, str], Coroutine[object, object, None]]) -> None:
    """`CELL WHERE`; some peers keep threads that do not end, so this process does not wait for them."""
    asyncio.run(perform(CELLS[sys.argv[1]], sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)


async def until_it_answers(ask: Callable[[], Awaitable[object]], seconds: float = 60.0) -> object:
    """A server that has just been started."""
    ends = time.monotonic() + seconds
    while True:
        try:
            return await ask()
        except Exception:
            if time.monotonic() > ends:
                raise
            await asyncio.sleep(0.2)
