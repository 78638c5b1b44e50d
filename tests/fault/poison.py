"""Tasks that kill their engine in every attempt, beside ordinary ones; a new engine each time, until all have ended.

    python tests/fault/poison.py FOLDER POISONS ORDINARY

Lives are forked from this process, which has neither a loop nor a thread. Prints what became of the tasks.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from everstep import Engine, Plan, Task, tool

LIVES_MAX = 200
SETTINGS: dict[str, Any] = {"engine": {"heartbeat": "100ms", "stale_after": "1s", "tasks": 20}}


@tool("poison.drink", effect="pure")
async def drink() -> None:
    await asyncio.sleep(0.03)
    os.kill(os.getpid(), signal.SIGKILL)


@tool("bread.eat", effect="idempotent")
async def eat(crumbs: int) -> dict[str, int]:
    await asyncio.sleep(0.06)  # longer than a poison needs: no innocent gets anywhere beside one
    return {"crumbs": crumbs + 1}


def steps() -> list[Any]:
    return [{"id": f"s{n}", "tool": "bread.eat", "with": {"crumbs": n}} for n in range(3)]


POISONED = Plan.from_dict({"name": "poisoned", "steps": [{"id": "drink", "tool": "poison.drink", "with": {}}]})
ORDINARY = Plan.from_dict({"name": "ordinary", "steps": steps()})


async def live(folder: Path, poisons: int, ordinary: int) -> None:
    """One life; the last one writes down how all ended."""
    async with Engine(folder / "store.db", tools=[drink, eat], config=SETTINGS) as engine:
        plans = [
            *((POISONED, f"poison-{n}") for n in range(poisons)),
            *((ORDINARY, f"bread-{n}") for n in range(ordinary)),
        ]
        tasks = [await engine.start(plan, {}, key=key) for plan, key in plans]
        await asyncio.gather(*(task.result() for task in tasks))
        ended = [told(key, await task.refresh()) for (_, key), task in zip(plans, tasks, strict=True)]
    (folder / "ended.json").write_text(json.dumps(ended))


def told(key: str, task: Task) -> dict[str, Any]:
    return {"key": key, "status": task.status, "error": (task.error or {}).get("code")}


def main(folder: Path, poisons: int, ordinary: int) -> int:
    """As many lives as it takes."""
    for number in range(1, LIVES_MAX + 1):
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(live(folder, poisons, ordinary))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        if (folder / "ended.json").exists():
            print(json.dumps({"lives": number, "tasks": json.loads((folder / "ended.json").read_text())}))
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
