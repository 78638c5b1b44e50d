"""The gate: nothing is accepted before the scan is done, and a failed scan says why (acceptance, WF-15)."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from everstep.doors.local.client import LocalClient
from everstep.errors import StoreError
from everstep.facade.engine import Engine
from everstep.settings import load_settings
from tests.e2e.carrier import TOOLS
from tests.e2e.processes import World, kill, until

INTERRUPTED = 5_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    here = World(tmp_path)
    yield here
    here.close()


def held(world: World, count: int) -> None:
    """Tasks inside a call when their engine died."""
    world.write_plan([{"id": "a", "tool": "carrier.hold", "with": {"label": "held"}}])
    process = world.carrier("start", count=count, EVERSTEP_ENGINE__TASKS=str(count))
    until(process, "started")
    world.until_marked(count)
    kill(process)


@pytest.mark.req("WF-15")
async def test_nothing_is_accepted_before_the_scan_is_done(world: World) -> None:
    held(world, INTERRUPTED)
    slow = "scan.page.after:1=sleep(1)"
    process = world.carrier("carry", EVERSTEP_FAILPOINTS=slow, EVERSTEP_ENGINE__TASKS=str(INTERRUPTED))
    socket = load_settings({"store": str(world.store)}).socket_path
    client = LocalClient(socket)
    seen: list[tuple[bool, int]] = []
    while not seen or not seen[-1][0]:
        assert process.poll() is None
        try:
            health = await client.request("GET", "/v1/health")
        except StoreError:  # the socket of the dead engine: its successor has not come yet
            continue
        refused = await client.request("POST", "/v1/tasks", body={"plan": {"name": "x", "steps": []}})
        seen.append((bool(msgspec.json.decode(health.body)["ready"]), refused.status))
    assert (False, 503) in seen, "the gate was closed while the scan went on"
    assert seen[-1][1] == 422, "the gate is open: the plan is looked at"
    await client.close()
    assert until(process, "recovered")[-1] == f"recovered {INTERRUPTED}"


@pytest.mark.req("WF-15")
async def test_a_scan_that_fails_says_why_and_changes_nothing(world: World) -> None:
    held(world, 1)
    connection = sqlite3.connect(world.store)
    connection.execute("UPDATE events SET body = '{\"broken\":' WHERE seq = 1")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="journal of t_"):
        await Engine(world.store, tools=TOOLS).open()
    connection = sqlite3.connect(world.store)
    assert connection.execute("SELECT status FROM tasks").fetchall() == [("running",)]
    connection.close()
