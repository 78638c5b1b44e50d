"""Traffic: what all tasks share beside their journals: the queue, rates, and whether everything is halted.

Kept by the store, so that it survives restarts and holds for every worker.
"""

from collections.abc import Sequence
from typing import Protocol

from everstep.domain.ids import Instant, TaskId
from everstep.domain.rate import Rate
from everstep.domain.record import record
from everstep.ports.housekeeping import Housekeeping


@record
class Reservation:
    """A place among the calls of one owner's provider, which somebody asks for; `quota`: of one day."""

    name: str
    rate: Rate | None
    at: Instant
    quota: int | None = None


@record
class Halt:
    """Nothing is claimed and no call begins, until somebody lifts it."""

    mode: str
    by: str
    at: Instant
    note: str | None = None


@record
class Waiting:
    """How many tasks nobody carries yet, and since when the oldest of them waits."""

    tasks: int
    since: Instant | None


class Traffic(Protocol):
    """The verbs. Every answer is durable."""

    @property
    def housekeeping(self) -> Housekeeping:
        """Tasks that go, workers that came."""

    async def reserve(self, wishes: Sequence[Reservation]) -> Sequence[Instant | None]:
        """When each may call; its place is taken whether it does or not. None: the day's quota is used up."""

    async def push(self, name: str, until: Instant) -> None:
        """The provider wants to be left alone until then: no place of its rate comes before."""

    async def set_halt(self, halt: Halt | None) -> None:
        """Halt, or go on. Commits that follow know it: none of them grants an intent, no task is claimed."""

    async def get_halt(self) -> Halt | None:
        """Whether everything is halted, and by whom."""

    async def live_tasks(self, owner: str) -> int:
        """How many unfinished tasks an owner has."""

    async def waiting(self) -> Waiting:
        """What could be claimed by somebody."""

    async def place_of(self, task: TaskId) -> int | None:
        """Its place among what can be claimed, from 1; None if it does not wait there."""
