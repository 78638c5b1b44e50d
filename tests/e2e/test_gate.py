"""The gate: nothing is accepted before the scan is done, and a failed scan says why (acceptance, WF-15)."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from everstep.doors.local.client import LocalClient
from everstep.errors import StoreError
from everstep.facade.engine import Engine
from everstep.settings import load_settings
from tests.e2e.carrier import TOOLS
from tests.e2e.processes import PATIENCE_S, World, kill, until

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
    process = world.carrier("carry", EVERSTEP_FAILPOINTS="scan.page.before:1=raise(store_full)")
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "StoreFull" in said) == (1, True), said
    assert statuses(world) == ["running"]


@pytest.mark.req("WF-15")
async def test_a_journal_that_cannot_be_read_stands_still_alone_and_health_says_so(world: World) -> None:
    held(world, 2)
    with closing(sqlite3.connect(world.store)) as connection, connection:
        connection.execute("UPDATE events SET body = '{\"broken\":' WHERE seq = 1 AND task = 1")
    engine = Engine(world.store, tools=TOOLS)
    await engine.open()
    try:
        assert engine.recovered == 1
        client = LocalClient(load_settings({"store": str(world.store)}).socket_path)
        health = msgspec.json.decode((await client.request("GET", "/v1/health")).body)
        await client.close()
        assert (health["status"], health["ready"]) == ("degraded", True), health
        assert "an interrupted task stands still" in health["reason"]
    finally:
        await engine.close()
    assert statuses(world)[0] == "running", "nothing was done with it"


def statuses(world: World) -> list[str]:
    with closing(sqlite3.connect(world.store)) as connection:
        return [status for (status,) in connection.execute("SELECT status FROM tasks ORDER BY num")]
