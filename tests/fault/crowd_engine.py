"""An engine that carries a crowd of tasks: `python -m tests.fault.crowd_engine STORE LOG TASKS POOL`.

Twenty tasks of one short call each, started once. Every call writes down when it began and ended, and in which process.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from everstep import Ctx, Engine, Plan, tool
from everstep.domain.values import JsonObject

CROWD = 20


def crowd_tool(log: Path) -> Any:
    @tool.pure("crowd.call", pool="few")
    async def call(n: int, *, ctx: Ctx) -> int:
        """Be there for a moment."""
        note(log, "begin", n)
        await asyncio.sleep(0.1)
        note(log, "end", n)
        return n

    return call


def note(log: Path, what: str, n: int) -> None:
    with log.open("a") as file:
        file.write(f"{what} {n} {os.getpid()} {time.monotonic_ns()}\n")


async def main() -> None:
    store, log, tasks, pool = sys.argv[1:]
    config: JsonObject = {"engine.tasks": int(tasks), "pools": {"few": int(pool)}}
    async with Engine(store, tools=[crowd_tool(Path(log))], config=config) as engine:
        plans = [Plan.from_dict({"name": f"crowd{n}", "steps": [{"id": "a", "tool": "crowd.call", "with": {"n": n}}]})
                 for n in range(CROWD)]  # fmt: skip
        every = [await engine.start(plan, key=f"crowd-{n}") for n, plan in enumerate(plans)]
        for task in every:
            await task.result()
    sys.stdout.write("done")


if __name__ == "__main__":
    asyncio.run(main())
