"""Our cells on PostgreSQL, through the public Engine: `python -m bench.peers.everstep_pg CELL URL`."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.everstep_cells import write_plan
from bench.workload import CELLS, Meter, measure
from everstep import Ctx, Engine, Plan, tool
from everstep.bootstrap import migrate_store, run_process
from everstep.settings import load_settings

SETTINGS: dict[str, Any] = {"engine": {"tasks": 100}, "limits": {"live_tasks": 100_000}}


async def main(cell: str, url: str) -> None:
    meter = Meter()

    @tool("bench.work", effect="idempotent")
    async def work(request: dict[str, Any], *, ctx: Ctx) -> dict[str, Any]:
        return meter.work(ctx.task_id, request["step"])

    with tempfile.TemporaryDirectory() as folder:
        prepared = Plan.load(write_plan(Path(folder)))
    async with Engine(url, tools=[work], config=SETTINGS) as engine:

        async def carry(_number: int) -> None:
            (await (await engine.start(prepared)).result()).raise_for_status()

        figures = await measure(CELLS[cell], carry, meter, lambda: 0)
        print(json.dumps(figures.as_json()), flush=True)


if __name__ == "__main__":
    migrate_store(load_settings({"store": sys.argv[2]}))
    run_process(main(sys.argv[1], sys.argv[2]))
