"""An engine that carries tasks of counted units: `python -m tests.fault.units_engine STORE URL TOOL`.

Starts the task the first time, goes on with it after that, and ends when it has ended.
"""

import asyncio
import sys
from typing import Any
from urllib.request import urlopen

from everstep import Ctx, Engine, Plan, tool
from everstep.domain.values import JsonObject
from everstep.testing.sim import sim_tools

UNITS = 8
WALLS: JsonObject = {"containment.uid_base": 0, "containment.require": {"units": {"process": "limited"}}}


@tool.idempotent("units.process", isolate="process", permissions=("net.http",))
def units(n: int, url: str, *, ctx: Ctx) -> dict[str, int]:
    """As `sim.units`, in a process of its own."""
    first = ctx.cursor if isinstance(ctx.cursor, int) else 0
    for number in range(first, n):
        with urlopen(f"{url}?unit={number}", timeout=30) as answer:
            answer.read()
        ctx.checkpoint(number + 1)
    return {"units": n, "first": first}


def plan_of(tool: str, url: str) -> Plan:
    step: dict[str, Any] = {"id": "a", "tool": tool, "with": {"n": UNITS, "url": url}}
    return Plan.from_dict({"name": "units", "steps": [step], "outputs": {"a": "${a}"}})


async def main() -> None:
    store, url, tool = sys.argv[1:]
    async with Engine(store, tools=[*sim_tools(), units], config=WALLS) as engine:
        result = await engine.run(plan_of(tool, url))
    sys.stdout.write(result.status)


if __name__ == "__main__":
    asyncio.run(main())
