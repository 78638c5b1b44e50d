"""A child whose only server is away until the file `up` is there: `python -m tests.fault.waiting FOLDER TASKS`."""

import asyncio
import json
import sys
from pathlib import Path

from everstep import Ctx, Engine, Transient, tool
from everstep.torture.child import log_of

CALL_S = 0.2
PLAN = "p.plan.json"
SETTINGS = "settings.json"


async def carry(folder: Path, tasks: int) -> None:
    """Tasks of one plan, to their end."""
    log = log_of(folder)

    @tool("wait.get", effect="pure")
    async def get(*, ctx: Ctx) -> dict[str, int]:
        """Ask the server."""
        log.write("start", ctx, {})
        await asyncio.sleep(CALL_S if (folder / "up").exists() else 0)
        log.write("end", ctx, {})
        if not (folder / "up").exists():
            raise Transient("503")
        return {}

    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    async with Engine(folder / "store.db", tools=[get], config=settings) as engine:
        started = [await engine.start(folder / PLAN, key=f"t{n}") for n in range(tasks)]
        for task in started:
            (await task.result()).raise_for_status()


if __name__ == "__main__":
    asyncio.run(carry(Path(sys.argv[1]), int(sys.argv[2])))
