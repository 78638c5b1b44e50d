"""S71: one owner who asks for fifty times the quota slows no other."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from everstep.adapters.stores.postgres.store import PgStore
from everstep.domain.errors import LimitExceeded
from everstep.domain.ids import TaskId
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.stage import Scene, done
from tests.postgres import schema

QUOTA, TIMES, SLOTS, ROUNDS, ARRIVE = 6, 50, 4, 15, 2
"""In every round `few` brings two tasks, `many` tries twenty; four are carried, for one round."""


@pytest.fixture
def url() -> Iterator[str]:
    with schema() as own:
        yield own


async def waits(on: Scene, *, crowded: bool) -> list[int]:
    """In how many rounds each task of `few` was done."""
    came: dict[TaskId, int] = {}
    carried: list[TaskId] = []
    took: list[int] = []
    refused = 0
    for number in range(ROUNDS):
        await finish(on, carried)
        for _ in range(QUOTA * TIMES // ROUNDS if crowded else 0):
            try:
                await on.store.create_tasks([replace(f.new_task(owner="many"), live_max=QUOTA)])
            except LimitExceeded:
                refused += 1
        for _ in range(ARRIVE):
            came[await on.created(owner="few")] = number
        carried = [one.lease.task for one in await on.store.claim_tasks(f.claim(on.me, SLOTS))]
        took += [number - came.pop(task) + 1 for task in carried if task in came]
    await finish(on, carried)
    assert refused > QUOTA * TIMES // 2 or not crowded
    return [*took, *(ROUNDS - at for at in came.values())]


async def finish(on: Scene, tasks: list[TaskId]) -> None:
    for task in tasks:
        done(await on.commit(f.step_commit(await on.load(task), f.finished())))


async def test_s71_fifty_times_the_quota_of_one_slows_no_other(url: str) -> None:
    """Counted in rounds, not in seconds: the slowest of its tasks takes at most twice as long as when it is alone."""
    store, me = PgStore(url, clock=VirtualClock()), f.worker()
    await store.open(me)
    try:
        on = Scene(store, me)
        alone = max(await waits(on, crowded=False))
        assert max(await waits(on, crowded=True)) <= 2 * alone
    finally:
        await store.close()
