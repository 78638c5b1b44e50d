"""Rates are the store's: they hold for every task, every worker, and over restarts."""

import asyncio
from collections.abc import Iterator

import pytest

from everstep import Engine, Plan
from everstep.domain.values import JsonObject
from everstep.testing.rig import HttpRig, answer
from tests.postgres import schema

CALLS = (7, 7, 6)
APART_S = 0.1


@pytest.fixture
def url() -> Iterator[str]:
    with schema() as own:
        yield own


@pytest.mark.req("7.5", "TI.2")
async def test_twenty_calls_of_three_tasks_and_two_workers_with_a_restart(url: str) -> None:
    async with HttpRig() as rig, asyncio.timeout(120):
        rig.on("/", answer(200, b"ok"))
        config: JsonObject = {
            "engine": {"heartbeat": "200ms", "stale_after": "10s", "janitor": "200ms"},
            "policy.networks": [f"127.0.0.1/32:{rig.port}"],
            "rates": {f"http.127.0.0.1:{rig.port}": "10/1s"},
        }
        began = asyncio.get_running_loop().time()
        async with Engine(url, config=config) as second:
            async with Engine(url, config=config) as first:
                tasks = [await first.start(fetching(rig, count)) for count in CALLS]
                while rig.count() < 6:  # noqa: ASYNC110 -- what the server has seen
                    await asyncio.sleep(0.01)
            async with Engine(url, config=config):
                for task in tasks:
                    assert (await (await second.get(task.id)).result()).status == "completed"
    arrived = sorted(one.at - began for one in rig.asked)
    assert len(arrived) == sum(CALLS)
    early = [(turn, at) for turn, at in enumerate(arrived) if at < turn * APART_S - 0.03]
    assert early == []


def fetching(rig: HttpRig, count: int) -> Plan:
    plan = Plan("fetching")
    for number in range(count):
        plan.step(f"get_{number}", "http.get", {"url": rig.url("/")}, needs=[])
    return plan
