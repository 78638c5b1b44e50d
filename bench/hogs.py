"""Programs that take too much, one after the other: when each is stopped, what was recorded, what it did to the others.

Part of `python -m bench.limits` (`each`).
"""

import asyncio
import time
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import psutil

from bench.kept import Figure, at_most
from everstep import Engine, Plan
from everstep.domain.values import JsonObject
from everstep.testing.sim import sim_tools
from everstep.testing.sim_hungry import hungry_tools

FREE: Final[JsonObject] = {"containment.uid_base": 0, "log_level": "error"}
HOGS: Final[dict[str, tuple[str, JsonObject, JsonObject]]] = {
    "memory bomb": ("sim.memory", {"mb": 2000, "hold": 60}, {"limits": {"memory": "150MB"}}),
    "CPU burner": ("sim.cpu", {"seconds": 600}, {"limits": {"cpu_time": "2s"}}),
    "fork bomb": ("sim.fork", {"n": 300}, {}),
    "output flood": ("sim.output", {"bytes": 200_000_000}, {}),
    "disk filler": ("sim.write", {"files": 200, "bytes": 2_000_000}, {"limits": {"disk": "20MB"}}),
    "hung": ("sim.hang", {}, {"timeout": "3s"}),
    "deaf": ("sim.hang", {"ignore_term": True}, {"timeout": "3s"}),
}
TRUE: Final[dict[str, tuple[str, JsonObject, str, float]]] = {
    "memory of 100 MB": ("sim.memory", {"mb": 100, "hold": 0.5}, "memory_peak_bytes", 100e6),
    "5 s of CPU time": ("sim.cpu", {"seconds": 5}, "cpu_s", 5.0),
    "output of 50 MB": ("sim.output", {"bytes": 50_000_000}, "bytes_out", 50e6),
    "30 MB written": ("sim.write", {"files": 15, "bytes": 2_000_000}, "disk_bytes", 30e6),
}
"""Of programs that keep within their limits: what they use in truth."""
LAG_MS: Final = 250
OFF: Final = 0.10
TICK_S: Final = 0.01


def hog_plan(name: str) -> Plan:
    tool, arguments, more = HOGS[name]
    plan = Plan(f"hog {name}".replace(" ", "-").lower())
    plan.step("a", tool, arguments, retry=0, on_error="continue", **more)
    return plan


async def each(folder: Path) -> list[Figure]:
    """One hog at a time, then programs whose use is known."""
    lags: list[float] = []
    ticking = asyncio.create_task(_tick(lags))
    here, figures = psutil.Process(), []
    before = {one.pid for one in here.children(recursive=True)}
    config: JsonObject = {**FREE, "workspace": str(folder)}
    async with Engine(folder / "e.db", tools=[*sim_tools(), *hungry_tools()], config=config) as engine:
        for name in HOGS:
            began = time.perf_counter()
            used, code = await _ended(engine, hog_plan(name))
            took = time.perf_counter() - began
            said = ", ".join(f"{what} {value:,.4g}" for what, value in used.items())
            figures.append(Figure(f"{name}: {code or 'ended'}; {said}", f"{took:.2f} s"))
        figures.append(at_most("the disk filler's files, of 20 MB", _on_disk(folder) / 1e6, 22, "MB"))
        for name, (tool, arguments, what, truth) in TRUE.items():
            plan = Plan("true")
            plan.step("a", tool, arguments)
            used, _ = await _ended(engine, plan)
            off = abs(used[what] - truth) / truth  # of memory, the interpreter's is part of it
            figures.append(at_most(f"{name}: recorded {used[what]:,.4g}, off by", off, OFF, ""))
    ticking.cancel()
    left = {one.pid for one in here.children(recursive=True)} - before
    figures.append(at_most("processes left over", len(left), 0, ""))
    figures.append(at_most(f"lag of the event loop, p99 of {len(lags)}", quantiles(lags, n=100)[98] * 1000, LAG_MS))
    return figures


def _on_disk(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.glob("sim-*"))


async def _tick(lags: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK_S)
        lags.append(time.perf_counter() - began - TICK_S)


async def _ended(engine: Engine, plan: Plan) -> tuple[dict[str, Any], str | None]:
    """What the attempt used, and how it failed."""
    task = await engine.start(plan)
    async for event in task.events():
        if event.type in {"attempt.failed", "attempt.timed_out", "step.completed"}:
            data: dict[str, Any] = dict(event.data)
            usage = data.get("usage") or {}
            used = {
                what: usage[what] for what in ("cpu_s", "memory_peak_bytes", "bytes_out", "files_open") if what in usage
            }
            return {**used, **(usage.get("counts") or {})}, (data.get("error") or {}).get("code")
    raise AssertionError(plan.name)
