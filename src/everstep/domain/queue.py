"""Who is claimed first, and how many tasks one owner may have: pure rules, the same in every store.

A task waits as if it had come `priority` times AGEING later than it did. So a task of priority 0 goes first, and one
of priority 3 is passed only by what came within a quarter of an hour after it: it waits longer, but never for ever.
The rank of a task does not change with time, so an index can keep the queue in order.
"""

from typing import Final

from everstep.domain.ids import Instant

AGEING_MS: Final = 300_000
"""What one step of priority is worth, in waiting time. Also written in the SQL of the queue's index."""
PRIORITY_MAX: Final = 3
LIVE_TASKS: Final = {"local": 10_000}
LIVE_TASKS_OTHERS: Final = 100


def rank(priority: int, created_at: Instant) -> int:
    """The smaller, the earlier it is claimed."""
    return created_at + AGEING_MS * priority


def live_tasks_max(owner: str, said: int | None) -> int:
    """How many unfinished tasks an owner may have: as the settings say, else by who it is."""
    return said if said is not None else LIVE_TASKS.get(owner, LIVE_TASKS_OTHERS)
