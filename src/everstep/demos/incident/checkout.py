"""The service of this scenario, a process of its own: `python -m everstep.demos.incident.checkout PORT sick|well`.

It tells its port as soon as it can be asked.
"""

import asyncio
import sys

from everstep.testing.rig import HttpRig, answer


async def serve(port: int, *, well: bool) -> None:
    """Until it is ended."""
    async with HttpRig(port=port) as site:
        sick = answer(503, {"up": False, "why": "all connections to the database are taken"})
        site.on("/checkout/health", answer(200, {"up": True}) if well else sick)
        site.on("/metrics", answer(200, f"errors_per_minute {2 if well else 214}".encode()))
        print(site.port, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), well=sys.argv[2] == "well"))
