"""Driver: who carries tasks in time. `engine/loop` does it in this process; another one may do it outside.

Such a driver knows when to look at a task, keeps its timers, and starts each call of it somewhere. What is to be done
it is told as a `Turn`; what a task is, and what follows from what, it never learns.
"""

from typing import Protocol

from everstep.domain.ids import Millis, StepPath, TaskId, WorkerId
from everstep.domain.record import record
from everstep.domain.task import Lease


@record
class OpenCall:
    """A call whose intent is durable; `within_ms`: so long it may take by its own limits."""

    step: StepPath
    attempt: int
    within_ms: Millis
    stop: bool = False
    """It should end: the task is being cancelled, paused at once, or everything is halted."""


@record
class Turn:
    """What is to be done for a task until something happens."""

    lease: Lease | None
    """None: nobody holds it; it has ended, or somebody has to do something first."""
    seq: int = 0
    """How far its journal was: of two turns the later one counts."""
    over: bool = False
    """It has ended."""
    open: tuple[OpenCall, ...] = ()
    """Every call without an end, whoever has written it down."""
    look_in_ms: Millis | None = None
    """When there will be something to do again; 0: at once."""


class Carried(Protocol):
    """What a driver asks of an engine. Every verb may be asked again, by another process too."""

    async def begin(self, task: TaskId, holder: WorkerId) -> Turn:
        """Take it for this holder; what an earlier one left is closed by the effect rule."""

    async def look(self, lease: Lease) -> Turn:
        """Something was said about it, or a time has come."""

    async def call(self, lease: Lease, step: StepPath, attempt: int) -> Turn | None:
        """Make this call, if it is still open, and write down what came of it; cancelling this ends the call.

        None: somebody was asked before, so the end is theirs to tell; if they never do, it has to be given up.
        """

    async def give_up(self, lease: Lease, step: StepPath, attempt: int) -> Turn:
        """Nobody knows what became of this call: the effect rule decides."""

    async def cancel(self, task: TaskId) -> None:
        """Somebody wants it ended who asked the driver."""

    def trouble(self, what: str, error: Exception) -> None:
        """Something is wrong with the driver that whoever operates it should read of."""


class Driver(Protocol):
    """The verbs."""

    async def open(self, carried: Carried) -> None:
        """Begin to carry; raises Unavailable."""

    async def tell(self, task: TaskId) -> None:
        """Look at this task, for the first time or again; raises Unavailable. Telling twice is harmless."""

    async def close(self, grace_s: float) -> None:
        """Take no more; calls under way have so long to end."""
