"""A store moves into another one while its tasks are in flight: nothing is lost, and nothing done twice."""

import asyncio
import json
import os
import signal
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from everstep.torture.checker import Bounds, check
from everstep.torture.dump import dump
from everstep.torture.history import Logs, Violation, read_effects
from tests.fault.fleet import Fleet
from tests.fault.test_fleet import manned, progress, until
from tests.postgres import schema


@pytest.mark.req("WF-19")
async def test_tasks_in_flight_go_on_in_the_database(tmp_path: Path) -> None:
    tasks = 15
    with schema(migrated=False) as url:
        fleet = Fleet(tmp_path, url, call_s=0.02)
        file = str(tmp_path / "tasks.db")
        fleet.settle(file)
        async with fleet.engine(file) as engine:
            await fleet.submit(engine, tasks)
        fleet.hire(1)
        await until(lambda: fleet.ready == 1)
        await progress(fleet, 60)
        refused = await asyncio.to_thread(fleet.call, "db", "move", url, "--yes")
        assert refused.returncode == 6, "somebody works on it"
        (worker,) = fleet.workers
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        fleet.workers.clear()

        moved = await asyncio.to_thread(fleet.call, "db", "move", url, "--yes", "--json")
        assert moved.returncode == 0, moved.stderr
        said = json.loads(moved.stdout)
        assert said["moved"] == tasks
        again = await asyncio.to_thread(fleet.call, "db", "move", url, "--yes", "--json")
        assert again.returncode == 0, "asking twice is asking once"
        closed = await asyncio.to_thread(fleet.call, "ls")
        assert "was moved to" in closed.stderr

        fleet.settle(url)
        async with manned(fleet, 2), fleet.engine() as engine:
            await fleet.finish(engine, tasks)
        checked = await asyncio.to_thread(fleet.call, "db", "check")
        assert (checked.returncode, checked.stdout) == (0, "ok\n"), checked.stderr
        assert fleet.judge() == []


async def test_tasks_in_flight_go_on_wherever_they_are_moved(tmp_path: Path) -> None:
    """Database to database, to a file, to another file: each time a worker is killed, and the checker asked."""
    tasks = 8
    with schema() as first, schema(migrated=False) as second:
        fleet = Fleet(tmp_path, first, call_s=0.02)
        async with fleet.engine() as engine:
            await fleet.submit(engine, tasks)
        stores = [first, second, str(tmp_path / "one.db"), str(tmp_path / "two.db")]
        for number, (source, target) in enumerate(pairwise(stores), 1):
            fleet.settle(source)
            fleet.hire(1)
            await until(partial(_ready, fleet, number))
            await progress(fleet, 20)
            (worker,) = fleet.workers
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            fleet.workers.clear()
            assert judged(fleet, source) == []
            await moved_in_time(fleet, target)
            assert judged(fleet, target) == []
        async with fleet.engine(stores[-1], worker=True) as engine:
            await fleet.finish(engine, tasks)
        assert judged(fleet, stores[-1], healed=True) == []


def _ready(fleet: Fleet, count: int) -> bool:
    return fleet.ready == count


def judged(fleet: Fleet, store: str, *, healed: bool = False) -> list[Violation]:
    """What the checker says of the journal that is there now."""
    journal = dump(store, fleet.folder / "journal.db") if "://" in store else Path(store)
    return check(journal, Logs(effects=read_effects(fleet.effects)), Bounds(max_recoveries=1000, healed=healed))


async def moved_in_time(fleet: Fleet, target: str) -> None:
    """Whoever was killed may still count as alive for a lease: until then it is refused, and nothing has moved."""
    while True:
        moved = await asyncio.to_thread(fleet.call, "db", "move", target, "--yes", "--json")
        if moved.returncode == 0:
            return
        assert moved.returncode == 6, moved.stdout + moved.stderr


async def test_nothing_is_moved_onto_tasks_that_are_there(tmp_path: Path) -> None:
    with schema() as url:
        fleet = Fleet(tmp_path, url)
        async with fleet.engine() as engine:
            await fleet.submit(engine, 1)
        fleet.settle(str(tmp_path / "tasks.db"))
        async with fleet.engine(str(tmp_path / "tasks.db")) as engine:
            await fleet.submit(engine, 1)
        refused = await asyncio.to_thread(fleet.call, "db", "move", url, "--yes", "--json")
        assert "holds tasks already" in refused.stdout + refused.stderr
        listed = await asyncio.to_thread(fleet.call, "ls", "--json")
        assert listed.returncode == 0, "the source is as it was"
