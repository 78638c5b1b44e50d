"""An engine in a process of its own: `python -m tests.e2e.engine_process STORE GATE all|own`; ends with its stdin."""

import asyncio
import sys
from pathlib import Path

from everstep import Engine
from everstep.settings import load_settings
from tests.e2e.gates import gated


async def main() -> None:
    store, gate, carries = sys.argv[1:]
    settings = load_settings({"store": store})
    tools = [gated(Path(gate))]
    engine = Engine(config=settings, tools=tools) if carries == "all" else Engine.foreground(settings, tools=tools)
    async with engine:
        sys.stdout.write(f"ready {engine.recovered}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
