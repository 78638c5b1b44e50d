"""One task of many calls: a `for_each` of 1,000 items and one of 10,000, each in a process of its own.

    python -m bench.long_task

Time per item has to stay the same (linear), and memory has to be bounded. Exit 1 where either is not so.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.kept import OUT, ROOT, at_most, keep
from bench.workload import rss_mb
from everstep import Engine, Plan, tool
from everstep.bootstrap import run_process

FEW, MANY = 1_000, 10_000
DEARER_MAX: Final = 1.5
"""How much more an item of many may cost: a machine is never quite the same twice."""
MB_PER_ITEM_MAX: Final = 0.01


async def carry(folder: Path, items: int) -> None:
    """One task to its end."""

    @tool.pure("bench.item")
    async def item(n: int) -> dict[str, Any]:
        return {"n": n}

    steps: list[Any] = [{"id": "all", "tool": "bench.item", "for_each": list(range(items)), "with": {"n": "${item}"}}]
    async with Engine(folder / "everstep.db", tools=[item]) as engine:
        before, began, cpu = rss_mb(), time.perf_counter(), time.process_time()
        (await engine.run(Plan.from_dict({"name": "long", "parallel": 20, "steps": steps}))).raise_for_status()
        figures = {
            "items": items,
            "wall_ms_item": (time.perf_counter() - began) * 1e3 / items,
            "cpu_ms_item": (time.process_time() - cpu) * 1e3 / items,
            "grown_mb": rss_mb() - before,
        }
    print(json.dumps(figures), flush=True)


def measured(items: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        words = [sys.executable, "-m", "bench.long_task", str(items), folder]
        said = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(said.stdout)
    return figures


def main() -> int:
    if len(sys.argv) > 1:
        run_process(carry(Path(sys.argv[2]), int(sys.argv[1])))
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    few, many = measured(FEW), measured(MANY)
    print(json.dumps([few, many]))
    dearer = many["cpu_ms_item"] / few["cpu_ms_item"]
    figures = [
        at_most(f"an item of {MANY:,}, beside one of {FEW:,}", dearer, DEARER_MAX, "x"),
        at_most(f"memory for {MANY:,} items", many["grown_mb"], MB_PER_ITEM_MAX * MANY, "MB"),
    ]
    keep("One task of 10,000 calls", "python -m bench.long_task", figures, [few, many])
    return int(not all(one.met for one in figures))


if __name__ == "__main__":
    sys.exit(main())
