"""A thousand tasks held in the middle, `kill -9`, and a new process: `python -m bench.recovery [TASKS]`.

Prints the seconds from the start of the new process until every task has entered a call again (and the processor's
time for that, which other programs on the machine hardly change), and until all have ended.
"""

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

from bench.everstep_cells import write_plan
from bench.kept import Figure, at_most, keep
from bench.workload import STEPS, result
from everstep import Ctx, Engine, Plan, tool
from everstep.bootstrap import run_process

TASKS: Final = 1_000
HELD_IN: Final = STEPS // 2
MOVE_MAX_S: Final = 1.0


async def hold(folder: Path, tasks: int) -> None:
    """Carry them up to their sixth step, and say so."""
    inside: set[str] = set()

    @tool("bench.work", effect="idempotent")
    async def work(request: dict[str, Any], *, ctx: Ctx) -> dict[str, Any]:
        if request["step"] == HELD_IN:
            inside.add(ctx.task_id)
            if len(inside) == tasks:
                print("held", flush=True)
            await asyncio.Event().wait()
        return result(request["step"])

    async with Engine(folder / "everstep.db", tools=[work], config={"engine": {"tasks": tasks}}) as engine:
        plan = Plan.load(write_plan(folder))
        started = await asyncio.gather(*(engine.start(plan) for _ in range(tasks)))
        await asyncio.gather(*(task.result() for task in started))


async def go_on(folder: Path, tasks: int) -> None:
    """Find them, and carry them to their ends."""
    born = psutil.Process().create_time()
    moving: dict[str, float] = {}
    cpu_s = 0.0
    last_step = 0
    ended = asyncio.Event()

    @tool("bench.work", effect="idempotent")
    async def work(request: dict[str, Any], *, ctx: Ctx) -> dict[str, Any]:
        nonlocal cpu_s, last_step
        if ctx.task_id not in moving:
            moving[ctx.task_id], cpu_s = time.time(), time.process_time()
        last_step += request["step"] == STEPS - 1
        if last_step == tasks:
            ended.set()
        return result(request["step"])

    async with Engine(folder / "everstep.db", tools=[work], config={"engine": {"tasks": tasks}}):
        await ended.wait()
        ends_s = time.time() - born
    figures = {"tasks": len(moving), "move_s": max(moving.values()) - born, "move_cpu_s": cpu_s, "end_s": ends_s}
    print(json.dumps(figures), flush=True)


def measure(folder: Path, tasks: int) -> dict[str, float]:
    """One crash."""
    command = [sys.executable, "-m", "bench.recovery", str(tasks), str(folder)]
    with subprocess.Popen([*command, "hold"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        first.send_signal(signal.SIGKILL)
    said = subprocess.run([*command, "go_on"], stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(said.stdout)
    return figures


def main() -> int:
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else TASKS
    if len(sys.argv) > 3:
        run_process((hold if sys.argv[3] == "hold" else go_on)(Path(sys.argv[2]), tasks))
        return 0
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        figures = measure(Path(folder), tasks)
    print(json.dumps(figures))
    kept = [
        at_most(f"all {tasks:,} move again", figures["move_s"], MOVE_MAX_S, "s"),
        Figure("all have ended", f"{figures['end_s']:.2f} s"),
    ]
    keep(f"{tasks:,} half-done tasks after kill -9", f"python -m bench.recovery {tasks}", kept, figures)
    return int(figures["move_s"] > MOVE_MAX_S)


if __name__ == "__main__":
    sys.exit(main())
