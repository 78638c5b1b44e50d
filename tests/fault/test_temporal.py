"""Tasks that Temporal carries: workers are killed in the middle of a step, the server is killed and starts again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.fleet import Fleet
from tests.fault.test_fleet import manned, progress
from tests.postgres import schema
from tests.temporal import DevServer, dev_server


@pytest.fixture
def server() -> Iterator[DevServer]:
    with dev_server() as one:
        yield one


@pytest.mark.req("X.3")
async def test_two_workers_one_is_killed_in_a_step_and_the_server_starts_again(
    tmp_path: Path, server: DevServer
) -> None:
    tasks = 4
    with schema() as url:
        fleet = Fleet(tmp_path, url, call_s=0.05, temporal=server.address)
        async with manned(fleet, 2), fleet.engine() as engine:
            await fleet.submit(engine, tasks)
            await progress(fleet, 10)
            fleet.kill(fleet.workers[0])
            await progress(fleet, 30)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await fleet.finish(engine, tasks)
            fleet.dismiss()
        assert fleet.judge() == []
