"""Too little memory or disk: tasks stand still at a safe point, and go on by themselves."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from everstep.adapters.gauge import MachineGauge
from everstep.authoring.plan import Plan
from everstep.domain.pressure import LEAST_BYTES, MOST_BYTES, Reading, short_of
from everstep.domain.values import JsonValue
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools, chain

GIB = 1024 * 1024 * 1024


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
def tools() -> Tools:
    return Tools()


@pytest.fixture
def dial() -> Dial:
    return Dial()


@pytest.fixture
async def engine(tools: Tools, dial: Dial) -> AsyncIterator[TestEngine]:
    async with TestEngine(tools.all(), gauge=dial) as opened:
        yield opened
        assert await opened.store.check() == []


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


@pytest.mark.parametrize(
    ("total", "free", "already", "short"),
    [
        (10 * GIB, GIB // 9, False, False),
        (10 * GIB, GIB // 11, False, True),
        (10 * GIB, GIB // 8, True, True),
        (10 * GIB, GIB // 6, True, False),
        (GIB, LEAST_BYTES - 1, False, True),
        (1000 * GIB, MOST_BYTES, False, False),
        (1000 * GIB, MOST_BYTES - 1, False, True),
    ],
)
def test_what_is_too_little(total: int, free: int, already: bool, short: bool) -> None:
    assert short_of(Reading(what="disk", free=free, total=total), already=already) is short


def test_the_machine_tells_its_own_figures(tmp_path: Path) -> None:
    readings = {one.what: one for one in MachineGauge(tmp_path).read()}
    assert readings.keys() == {"memory", "disk"}
    assert all(0 < one.free <= one.total and 0 <= one.level < 1 for one in readings.values())
