"""The lease of a worker: kept while it computes, lost while it is frozen, and never written under again."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everstep import Engine, Plan
from everstep.torture.history import read_effects
from tests.fault.fleet import Fleet
from tests.fault.test_fleet import log_of, manned, progress, until
from tests.postgres import schema

BUSY_S = float(os.environ.get("EVERSTEP_TEST_BUSY_S", "0"))
"""How long the long trial computes, with the settings that everybody has; 0: until a few beats were seen."""
AGE_MAX_S = 6.0
BEATS = 5


def busy_plan(folder: Path) -> Plan:
    step = {"id": "a", "tool": "crew.busy", "with": {"until": str(folder / "enough")}, "timeout": "10m"}
    return Plan.from_dict({"name": "busy", "steps": [step]})  # type: ignore[list-item]


@pytest.mark.req("WF-13")
async def test_it_beats_while_a_tool_takes_all_of_the_processor(tmp_path: Path) -> None:
    usual: dict[str, Any] = {"heartbeat": "5s", "stale_after": "30s", "janitor": "5s"} if BUSY_S else {}
    with schema() as url:
        fleet = Fleet(tmp_path, url, **usual)
        async with manned(fleet, 1), fleet.engine() as engine:
            task = await engine.start(busy_plan(tmp_path))
            await progress(fleet, 1)
            seen, oldest = set[int](), 0.0
            began = time.monotonic()
            while len(seen) < BEATS or time.monotonic() < began + BUSY_S:
                (beat,) = await beats(engine, fleet)
                seen.add(beat)
                oldest = max(oldest, time.time() - beat / 1000)
                await asyncio.sleep(0.05)
            assert len(read_effects(fleet.effects)) == 1, "it computes still"
            (tmp_path / "enough").touch()
            assert (await task.result()).status == "completed"
            kinds = [event.type async for event in task.events(follow=False)]
            assert "task.recovered" not in kinds
    if BUSY_S:
        print(f"{len(seen)} beats in {BUSY_S:g} s of computing, the oldest was {oldest:.2f} s old")
        assert oldest < AGE_MAX_S


async def beats(engine: Engine, fleet: Fleet) -> list[int]:
    """When the workers last gave a sign of life, as everybody can see it."""
    pids = {worker.pid for worker in fleet.workers}
    kept = await engine.desk.workers()
    with psycopg.connect(fleet.url) as connection:
        of = {name for name, pid in connection.execute("SELECT id, pid FROM workers") if pid in pids}
    return [int(one.heartbeat_at) for one in kept if one.id in of]


@pytest.mark.req("WF-13", "WF-28")
async def test_who_was_frozen_for_longer_than_its_lease_writes_nothing_afterwards(tmp_path: Path) -> None:
    tasks = 8
    with schema() as url:
        fleet = Fleet(tmp_path, url, call_s=0.3)
        async with manned(fleet, 1), fleet.engine() as engine:
            handles = await fleet.submit(engine, tasks)
            await progress(fleet, tasks)
            (frozen,) = fleet.workers
            holder = {event.data["worker"] async for event in handles[0].events(follow=False) if "worker" in event.data}
            os.killpg(frozen.pid, signal.SIGSTOP)
            try:
                fleet.hire(1)
                await fleet.finish(engine, tasks)
                before = {task.id: [event async for event in task.events(follow=False)] for task in handles}
            finally:
                os.killpg(frozen.pid, signal.SIGCONT)
            await until(lambda: "joined again" in log_of(fleet))
            assert frozen.poll() is None
            assert set(fleet.dismiss()) == {0}
            taken_over = 0
            for task in handles:
                after = [event async for event in task.events(follow=False)]
                assert after == before[task.id]
                moved = next((event.seq for event in after if event.type == "task.recovered"), None)
                taken_over += moved is not None
                assert not [event for event in after if moved and event.seq >= moved and event.actor["id"] in holder]
            assert taken_over
        assert fleet.judge() == []
