"""Too little memory or disk: tasks stand still at a safe point, and go on by themselves."""

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from everstep.adapters.gauge import MachineGauge
from everstep.adapters.isolation.group import best_roots, new_group, removed
from everstep.authoring.plan import Plan
from everstep.domain.pressure import LEAST_BYTES, MOST_BYTES, Load, Reading, load_of
from everstep.domain.values import JsonValue
from everstep.doors.api.hub import tick_every
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ECHO, HOLD, Window
from tests.unit.engine.plans import Tools, chain

GIB = 1024 * 1024 * 1024


class Waiting:
    """The queue of a store."""

    waiting_writes = (3, 10)


class Dial:
    """A gauge that tests turn."""

    def __init__(self) -> None:
        self.free = 5 * GIB

    def read(self) -> Sequence[Reading]:
        return [Reading(what="memory", free=self.free, total=10 * GIB)]


def steps(first: str) -> Plan:
    said: list[JsonValue] = [{"id": "a", "tool": first}, {"id": "b", "tool": "test.echo"}]
    return Plan.from_dict({"name": "p", "steps": said})


@pytest.fixture
def dial() -> Dial:
    return Dial()


@pytest.fixture
async def engine(tools: Tools, dial: Dial) -> AsyncIterator[TestEngine]:
    async with TestEngine(tools.all(), gauge=dial) as opened:
        yield opened
        assert await opened.store.check() == []


@pytest.mark.req("7.6")
async def test_calls_end_tasks_stand_still_nothing_is_claimed_and_all_go_on_by_themselves(
    engine: TestEngine, tools: Tools, dial: Dial
) -> None:
    task = await engine.start(steps("test.once"))
    await tools.holding.wait()
    dial.free = 10 * 1024 * 1024
    await engine.clock.advance("6s")
    assert (await task.refresh()).status == "pausing", "the call in flight may end"
    tools.release.set()
    await engine.clock.advance("1s")
    assert (await task.refresh()).status == "paused"
    pause = engine.inbox.only()
    assert (pause.type, pause.answers) == ("resourcePressure", ("resume", "cancel"))
    assert pause.expires_at is None, "it waits for nobody"
    (opened,) = [event.data["reason"] async for event in task.events(follow=False) if event.type == "pause.opened"]
    assert opened == {"type": "resourcePressure", "what": "memory", "level": 0.999}
    queued = await engine.start(chain("q"))
    await engine.clock.advance("1h")
    assert ((await queued.refresh()).status, tools.calls["q"]) == ("queued", 0)
    dial.free = 110 * 1024 * 1024
    await engine.clock.advance("6s")
    assert (await task.refresh()).status == "paused", "a little more is not enough again"
    dial.free = 5 * GIB
    await engine.clock.advance("6s")
    assert [(await one.refresh()).status for one in (task, queued)] == ["completed", "completed"]


async def test_who_is_resumed_by_hand_is_left_alone(engine: TestEngine, tools: Tools, dial: Dial) -> None:
    task = await engine.start(steps("test.hold"))
    await tools.holding.wait()
    dial.free = 0
    await engine.clock.advance("6s")
    assert (await task.refresh()).status == "pausing"
    await task.resume()
    await engine.clock.advance("30s")
    tools.release.set()
    await engine.clock.advance("1s")
    dial.free = 5 * GIB
    await engine.clock.advance("6s")
    assert (await task.refresh()).status == "completed"


async def test_a_restart_finds_who_stands_still(engine: TestEngine, tools: Tools, dial: Dial) -> None:
    task = await engine.start(steps("test.once"))
    await tools.holding.wait()
    dial.free = 0
    await engine.clock.advance("6s")
    tools.release.set()
    await engine.clock.advance("1s")
    await engine.crash()
    task = await engine.get(task.id)
    await engine.clock.advance("6s")
    assert (await task.refresh()).status == "paused", "there is still too little"
    dial.free = 5 * GIB
    await engine.crash()
    task = await engine.get(task.id)
    await engine.clock.advance("1s")
    assert (await task.refresh()).status == "completed"


@pytest.mark.req("7.6")
async def test_while_little_is_left_less_is_begun_and_more_when_there_is_enough(
    engine: TestEngine, tools: Tools, dial: Dial
) -> None:
    engine_tasks = 64
    dial.free = GIB // 5
    await engine.clock.advance("6s")
    tasks = [await engine.start(steps("test.hold")) for _ in range(engine_tasks)]
    await engine.clock.advance("6s")
    running = [(await task.refresh()).status for task in tasks].count("running")
    assert running == engine_tasks // 4, "fewer starts, and nobody is paused"
    dial.free = 5 * GIB
    await engine.clock.advance("6s")
    assert {(await task.refresh()).status for task in tasks} == {"running"}, "by itself"
    tools.release.set()
    await engine.clock.advance("1s")
    assert {(await task.refresh()).status for task in tasks} == {"completed"}


@pytest.mark.req("7.6")
async def test_at_the_door_nothing_new_is_taken_while_too_little_is_left(
    engine: TestEngine, tools: Tools, dial: Dial
) -> None:
    window = Window(engine)
    before = await window.start(HOLD)
    await tools.holding.wait()
    dial.free = 0
    await engine.clock.advance("6s")
    reply = await window.ask("POST", "/v1/tasks", {"plan": ECHO})
    said: Any = reply.json()
    assert (reply.status, said["error"]["code"], reply.headers["retry-after"]) == (503, "overloaded", "5")
    assert (await window.good("GET", "/v1/health"))["load"]["level"] == "short"
    assert (await window.good("GET", f"/v1/tasks/{before['id']}"))["status"] == "pausing", "what is there is told"
    tools.release.set()
    dial.free = 5 * GIB
    await engine.clock.advance("6s")
    assert (await window.start(ECHO))["status"] in ("queued", "running", "completed")
    await engine.clock.advance("6s")
    assert (await window.good("GET", f"/v1/tasks/{before['id']}"))["status"] == "completed", "running work finishes"
    assert (await window.good("GET", "/v1/health"))["load"]["level"] == "ease"


HOG = """import sys
kept = []
print(flush=True)
for line in sys.stdin:
    kept.clear()
    kept = [bytearray(b"x") * int(line)]
    print(flush=True)
"""


class Hog:
    """A process that takes as much memory as it is told, inside a control group that has no more than 300 MB."""

    def __init__(self) -> None:
        group = new_group(best_roots(), 300_000_000, 8)
        assert group is not None
        self.group = group
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-c", HOG], text=True, **pipes)  # type: ignore[call-overload]
        for door in group.doors:
            Path(door).write_text(str(self.process.pid))
        self.process.stdout.readline()

    def take(self, megabytes: int) -> None:
        """When this returns it has them."""
        self.process.stdin.write(f"{megabytes * 1_000_000}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        assert removed(self.group)


@pytest.mark.skipif(best_roots() is None, reason="no control groups here")
@pytest.mark.req("7.6")
async def test_a_real_hog_drives_the_levels_and_all_goes_on_when_it_has_gone(tmp_path: Path, tools: Tools) -> None:
    hog = Hog()
    gauge = MachineGauge(tmp_path, group=hog.group.folders["memory"])
    async with TestEngine(tools.all(), gauge=gauge) as engine:
        window = Window(engine)

        async def level() -> str:
            await engine.clock.advance("6s")
            return str((await window.good("GET", "/v1/health"))["load"]["level"])

        seen = [await level()]
        running = await engine.start(steps("test.once"))
        await tools.holding.wait()
        hog.take(150)
        seen.append(await level())
        assert (await running.refresh()).status == "running"
        hog.take(255)
        seen.append(await level())
        assert (await running.refresh()).status == "pausing"
        assert (await window.ask("POST", "/v1/tasks", {"plan": ECHO})).status == 503
        tools.release.set()
        await engine.clock.advance("1s")
        assert (await running.refresh()).status == "paused"
        hog.take(150)
        seen.append(await level())
        hog.close()
        seen.append(await level())
        assert seen == ["ease", "busy", "short", "busy", "ease"]
        await engine.clock.advance("6s")
        assert (await running.refresh()).status == "completed", "by itself"
        assert (await window.start(ECHO))["status"] in ("queued", "running", "completed")


@pytest.mark.req("7.6")
def test_ticks_are_slower_while_little_is_left() -> None:
    assert [tick_every(load, 4) for load in Load] == [0.25, 1, 1]


EASE, BUSY, SHORT = Load


@pytest.mark.req("7.6")
@pytest.mark.parametrize(
    ("total", "free", "before", "now"),
    [
        (10 * GIB, GIB, EASE, EASE),
        (10 * GIB, GIB // 4, EASE, BUSY),
        (10 * GIB, GIB // 3, BUSY, BUSY),
        (10 * GIB, GIB // 2, BUSY, EASE),
        (10 * GIB, GIB // 9, EASE, BUSY),
        (10 * GIB, GIB // 11, EASE, SHORT),
        (10 * GIB, GIB // 8, SHORT, SHORT),
        (10 * GIB, GIB // 6, SHORT, BUSY),
        (GIB, LEAST_BYTES - 1, EASE, SHORT),
        (1000 * GIB, MOST_BYTES, EASE, BUSY),
        (1000 * GIB, MOST_BYTES - 1, EASE, SHORT),
    ],
)
def test_what_is_little_and_what_is_too_little(total: int, free: int, before: Load, now: Load) -> None:
    assert load_of(Reading(what="disk", free=free, total=total), before) is now


@pytest.mark.req("7.6")
def test_the_queue_of_the_store_counts_too() -> None:
    def stands(free: int) -> Load:
        return load_of(Reading(what="store", free=free, total=1000), EASE)

    assert [stands(free) for free in (1000, 700, 200)] == [EASE, BUSY, SHORT]


def test_the_machine_tells_its_own_figures(tmp_path: Path) -> None:
    readings = {one.what: one for one in MachineGauge(tmp_path, Waiting()).read()}
    assert readings.keys() == {"memory", "disk", "store"}
    assert readings["store"].free == 7
    assert all(0 < one.free <= one.total and 0 <= one.level < 1 for one in readings.values())
