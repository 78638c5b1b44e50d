"""Housekeeping: what is done to a store as a whole, for nobody in particular: tasks that go, workers that came."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from everstep.domain.ids import Instant, Millis, TaskId, WorkerId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus

PART: Final = 250
"""Tasks that go together, so that nobody waits long for one."""


@record
class KeptWorker:
    """An incarnation, whether it was fenced or let go, and how many tasks it holds."""

    id: WorkerId
    name: str
    host: str
    version: str
    heartbeat_at: Instant
    gone: bool
    tasks: int
    tools: tuple[str, ...] = ()
    """What it says it can call, where others want to know."""


class Housekeeping(Protocol):
    """The verbs. Every write is durable when its call returns."""

    async def delete(self, owner: str, task: TaskId, key_until: Instant) -> bool:
        """A task that has ended is gone, journal and all; its key is given to nobody until then. False: not ended."""

    async def ended(self, status: TaskStatus, before: Instant, limit: int) -> Sequence[tuple[str, TaskId]]:
        """Whose tasks ended this way before then, the oldest first."""

    async def copied_at(self) -> Instant | None:
        """When this store was copied from another, until `forget_copy`; None if it is none."""

    async def forget_copy(self) -> None:
        """From now on it is a store like any other."""

    async def collect(self, before: Instant) -> int:
        """Payloads that no journal names, and that nobody has kept since then, are gone; how many."""

    async def workers(self) -> Sequence[KeptWorker]:
        """Every incarnation that is remembered, the newest first."""


async def clean_up(
    keep: Housekeeping, kept: Mapping[TaskStatus, Millis], keys_ms: Millis, now: Instant
) -> dict[TaskStatus, int]:
    """Delete what may go; how many of each kind went."""
    gone = dict.fromkeys(kept, 0)
    for status, age in kept.items():
        while found := await keep.ended(status, Instant(now - age), PART):
            done = await asyncio.gather(*(keep.delete(owner, task, Instant(now + keys_ms)) for owner, task in found))
            gone[status] += sum(done)
            if not any(done):
                break
    return gone
