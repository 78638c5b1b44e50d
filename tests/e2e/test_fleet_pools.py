"""Pools and rates of a fleet: as many calls as there are slots, whoever makes them, and whoever dies."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from everstep import Engine, Plan, tool
from everstep.domain.ids import StepPath, TaskId, WorkerId
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.news import Slot
from everstep.torture.history import read_effects
from tests.fault.fleet import Fleet
from tests.fault.test_fleet import manned, progress
from tests.postgres import schema

QUICK: JsonObject = {
    "engine": {"heartbeat": "200ms", "stale_after": "2s", "janitor": "200ms"},
    "pools": {"scarce": {"size": 3, "scope": "fleet"}},
    "limits": {"live_tasks": 1000},
}
SIZE, TASKS = 3, 20


@pytest.fixture
def url() -> Iterator[str]:
    with schema() as own:
        yield own


def plan() -> Plan:
    steps: list[JsonValue] = [{"id": "a", "tool": "fleet.scarce", "pool": "scarce"}]
    return Plan.from_dict({"name": "p", "steps": steps})


class Calls:
    """How many are under way, and how many were at most."""

    def __init__(self) -> None:
        self.now = self.most = self.made = 0

    def tool(self) -> Callable[[], Awaitable[int]]:
        @tool("fleet.scarce", effect="pure")
        async def scarce() -> int:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.02)
            self.now -= 1
            self.made += 1
            return self.made

        return scarce


@pytest.mark.req("7.3")
async def test_two_engines_never_make_more_calls_than_the_fleet_has_slots(url: str) -> None:
    calls = Calls()
    work = calls.tool()
    async with Engine(url, tools=[work], config=QUICK) as one, Engine(url, tools=[work], config=QUICK):
        tasks = [await one.start(plan()) for _ in range(TASKS)]
        ends = await asyncio.wait_for(asyncio.gather(*(task.result() for task in tasks)), 120)
    assert {end.status for end in ends} == {"completed"}
    assert (calls.made, calls.now) == (TASKS, 0)
    assert 1 <= calls.most <= SIZE


@pytest.mark.req("7.3")
async def test_a_slot_counts_while_its_worker_holds_the_task(url: str) -> None:
    calls = Calls()
    async with Engine(url, tools=[calls.tool()], config=QUICK) as engine:
        news = engine.desk._kit.store.news
        assert news is not None
        stranger = WorkerId("w_stranger")
        left = Slot(pool="scarce", task=TaskId("t_left"), step=StepPath("a"), size=1)
        assert await news.slots.take(stranger, (left,)) == [True]
        other = Slot(pool="scarce", task=TaskId("t_other"), step=StepPath("a"), size=1)
        assert await news.slots.take(stranger, (other,)) == [True], "nobody holds that task: its slot is free"
        result = await asyncio.wait_for((await engine.start(plan())).result(), 60)
        assert result.status == "completed"


@pytest.mark.req("7.3")
async def test_the_limit_holds_over_a_kill(tmp_path: Path, url: str) -> None:
    """From the log of the calls themselves: who was killed in one has ended it then."""
    fleet = Fleet(tmp_path, url, call_s=0.1)
    with (tmp_path / "everstep.toml").open("a") as settings:
        settings.write('[pools.search]\nsize = 3\nscope = "fleet"\n')
    steps: list[JsonValue] = [{"id": "a", "tool": "trial.pure", "with": {"value": 1}, "pool": "search"}]
    async with manned(fleet, 2), fleet.engine() as engine:
        made = Plan.from_dict({"name": "p", "steps": steps})
        for _ in range(TASKS):
            await engine.start(made)
        await progress(fleet, 6)
        victim = fleet.workers[0]
        fleet.kill(victim)
        await fleet.finish(engine, TASKS)
    assert most_at_once(fleet, victim.pid) <= SIZE


def most_at_once(fleet: Fleet, killed: int) -> int:
    """A call of the killed process lasts until the next one of another began after its last sign of life."""
    lines = read_effects(fleet.effects)
    last = max((at for at, one in enumerate(lines) if one.pid == killed), default=0)
    open_now: dict[tuple[str, int], int] = {}
    most = 0
    for at, one in enumerate(lines):
        if at > last:
            open_now = {call: pid for call, pid in open_now.items() if pid != killed}
        call = (one.task, one.attempt)
        if one.what == "start":
            open_now[call] = one.pid
        else:
            open_now.pop(call, None)
        most = max(most, len(open_now))
    return most


@pytest.mark.req("7.5")
async def test_a_rate_holds_for_tasks_of_two_workers_and_over_a_restart(tmp_path: Path, url: str) -> None:
    """Every call has a place that was reserved in the store: the n-th cannot begin before the n-th place comes."""
    fleet = Fleet(tmp_path, url, call_s=0.0)
    with (tmp_path / "everstep.toml").open("a") as settings:
        settings.write('[rates]\n"trial.pure" = "10/1s"\n')
    steps: list[JsonValue] = [{"id": f"s{n}", "tool": "trial.pure", "with": {"value": n}} for n in range(7)]
    async with manned(fleet, 2), fleet.engine() as engine:
        began = time.time_ns() // 1_000_000
        for _ in range(3):
            await engine.start(Plan.from_dict({"name": "p", "steps": steps}))
        await progress(fleet, 10)
        fleet.kill(fleet.workers[0])
        await fleet.finish(engine, 3)
    starts = sorted(one.at for one in read_effects(fleet.effects) if one.what == "start")
    assert len(starts) >= 21
    assert [at for n, at in enumerate(starts) if at < began + 100 * n] == []
