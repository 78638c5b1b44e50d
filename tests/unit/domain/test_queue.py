"""The order of the queue: priority first, and nobody waits for ever."""

import random
import re
from importlib.resources import files

import pytest

from everstep.domain.ids import Instant
from everstep.domain.queue import AGEING_MS, PRIORITY_MAX, live_tasks_max, rank

MINUTE = 60_000


def served(queue: list[tuple[int, int]], every_ms: int) -> list[tuple[int, int, int]]:
    """(priority, came, claimed) of tasks that come over time, one claimed every so often."""
    waiting: list[tuple[int, int]] = []
    left = sorted(queue, key=lambda one: one[1])
    claimed: list[tuple[int, int, int]] = []
    now = 0
    while left or waiting:
        while left and left[0][1] <= now:
            waiting.append(left.pop(0))
        if waiting:
            first = min(waiting, key=lambda one: (rank(one[0], Instant(one[1])), one[1]))
            waiting.remove(first)
            claimed.append((*first, now))
        now += every_ms
    return claimed


def test_of_tasks_that_came_together_the_more_urgent_go_first_and_equals_in_order() -> None:
    draw = random.Random(1)
    queue = [(draw.randint(0, PRIORITY_MAX), n) for n in range(1000)]
    order = [(priority, came) for priority, came, _ in served([(p, 0) for p, _ in queue], 1)]
    assert order == sorted(order)
    ranked = sorted(queue, key=lambda one: rank(one[0], Instant(one[1])))
    assert ranked == sorted(queue)


@pytest.mark.parametrize("priority", range(1, PRIORITY_MAX + 1))
def test_a_task_of_low_priority_is_claimed_although_urgent_ones_never_stop_coming(priority: int) -> None:
    """A thousand urgent tasks, one a second, just as many as are claimed: the one that waits gets its turn."""
    queue = [(0, n * 1000) for n in range(1000)] + [(priority, 500)]
    claimed = {(p, came): at for p, came, at in served(queue, 1000)}
    waited = claimed[priority, 500] - 500
    assert priority * AGEING_MS <= waited <= priority * AGEING_MS + 2000
    assert max(at - came for (p, came), at in claimed.items() if p == 0) <= 2000, "it delays nobody for long"


def test_the_index_of_the_store_ranks_alike() -> None:
    stores = files("everstep.adapters.stores")
    for name in ("sqlite/schema.sql", "sqlite/queries.sql", "sql/queries.sql"):
        weights = re.findall(r"created_at \+ (\d+) \* (?:\w+\.)?priority", (stores / name).read_text(encoding="utf-8"))
        assert set(weights) == {str(AGEING_MS)}


def test_how_many_tasks_an_owner_may_have() -> None:
    assert [live_tasks_max(owner, None) for owner in ("local", "ana")] == [10_000, 100]
    assert live_tasks_max("ana", 7) == 7
