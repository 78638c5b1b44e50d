"""Our cells: workload W through the public Engine, as anybody would write it.

`python -m bench.everstep_cells CELL FOLDER [--flushes]` measures one cell in this process and prints its figures. With
`--flushes` every sync of SQLite is counted on its way to the disk, which costs time: those figures are for counting.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from bench.workload import CELLS, STEPS, Carry, Meter, argument, measure
from everstep import Ctx, Engine, Plan, tool
from everstep.bootstrap import run_process

BASE = "unix"
SETTINGS: dict[str, Any] = {"engine": {"tasks": 1000}}
"""Nobody waits for a place: what is measured is the engine, not its queue."""


class SyncFile(apsw.VFSFile):
    """A file that counts its flushes."""

    synced = 0

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(BASE, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 -- SQLite's name
        SyncFile.synced += 1
        super().xSync(flags)


class SyncSystem(apsw.VFS):
    """The default file system of every connection opened after it was made."""

    def __init__(self) -> None:
        super().__init__("counting", BASE, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> SyncFile:  # noqa: N802 -- SQLite's name
        return SyncFile(name, flags)


def write_plan(folder: Path) -> Path:
    """Ten steps in line; every argument is written out, as a planning model would do."""
    steps = [{"id": f"s{n}", "tool": "bench.work", "with": {"request": argument(n)}} for n in range(STEPS)]
    path = folder / "bench.plan.json"
    path.write_text(json.dumps({"name": "bench", "steps": steps}), encoding="utf-8")
    return path


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Carry, Meter]]:
    """An engine that carries tasks of W, and what they are measured by."""
    meter = Meter()

    @tool("bench.work", effect="idempotent")
    async def work(request: dict[str, Any], *, ctx: Ctx) -> dict[str, Any]:
        return meter.work(ctx.task_id, request["step"])

    async with Engine(folder / "everstep.db", tools=[work], config=SETTINGS) as engine:
        plan = Plan.load(write_plan(folder))

        async def carry(_number: int) -> None:
            (await (await engine.start(plan)).result()).raise_for_status()

        yield carry, meter


async def main(cell: str, folder: Path) -> None:
    async with opened(folder) as (carry, meter):
        figures = await measure(CELLS[cell], carry, meter, lambda: SyncFile.synced)
        print(json.dumps(figures.as_json()), flush=True)


def carry_out(cell: str, folder: Path) -> None:
    """As a process of the product does; the figures name the loop."""
    run_process(main(cell, folder))


if __name__ == "__main__":
    if "--flushes" in sys.argv:
        system = SyncSystem()
        # A read-only connection tries for a lock when it closes; SQLite forgives that itself, a counting file does not.
        with suppress(apsw.IOError):
            carry_out(sys.argv[1], Path(sys.argv[2]))
    else:
        carry_out(sys.argv[1], Path(sys.argv[2]))
