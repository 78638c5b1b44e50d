"""A process that carries tasks, for tests that kill it. `python -m tests.e2e.carrier STORE COMMAND …`"""

import asyncio
import os
import sys
from typing import Any

from everstep import Ctx, Engine, Plan, tool

MARKS = "CARRIER_MARKS"


def mark(text: str) -> None:
    """One line, written by one append: what happened stands there whatever dies next."""
    handle = os.open(os.environ[MARKS], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


@tool("carrier.mark", effect="pure")
async def leave_mark(label: str, *, ctx: Ctx) -> dict[str, Any]:
    """Leave a mark in the world."""
    mark(f"{label} {ctx.attempt}")
    return {"label": label}


@tool("carrier.hold", effect="pure")
async def hold(label: str) -> dict[str, Any]:
    """Leave a mark, then wait to be killed."""
    mark(label)
    await asyncio.Event().wait()
    return {}


@tool("carrier.die", effect="pure")
async def die(label: str) -> dict[str, Any]:
    """Take the whole process along."""
    mark(label)
    os.kill(os.getpid(), 9)
    return {}


@tool("carrier.die_first", effect="pure")
async def die_first(label: str, *, ctx: Ctx) -> dict[str, Any]:
    """Take the whole process along, once."""
    mark(f"{label} {ctx.attempt}")
    if ctx.attempt == 1:
        os.kill(os.getpid(), 9)
    return {}


TOOLS = [leave_mark, hold, die, die_first]


async def main(store: str, command: str, plan: str, count: int) -> None:
    """Start tasks of a plan, or only carry what is there; say when everything has settled."""
    async with Engine(store, tools=TOOLS) as engine:
        print(f"recovered {engine.recovered}", flush=True)
        if command == "start":
            loaded = Plan.load(plan)
            for n in range(count):
                await engine.start(loaded, key=f"{loaded.spec.name}-{n}")
            print("started", flush=True)
        for listed in await engine.list(limit=500):
            result = await listed.result(on_pause="return")
            print(f"{listed.id} {result.status} {(result.error or {}).get('code')}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
