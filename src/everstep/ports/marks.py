"""Marks: how far a task was said to be, how far the calls of a step have come, which of them has begun.

No event tells of them.
"""

from typing import Literal, Protocol, TypeAlias

from everstep.domain.ids import Digest, StepPath, TaskId
from everstep.domain.record import record
from everstep.domain.task import Lease
from everstep.domain.values import JsonValue


@record
class Mark:
    """A call has come so far, and whoever makes it again may go on from there."""

    attempt: int
    tool: str
    input: Digest
    """Of the arguments: with others it means nothing."""
    cursor: JsonValue

    def of(self, tool: str, input: Digest) -> bool:
        """Whether it was this call."""
        return (self.tool, self.input) == (tool, input)


Kept: TypeAlias = Literal["kept", "pausing", "gone"]
"""It is kept; it is, and the task is to stand still; it is not."""
Begun: TypeAlias = Literal["now", "before", "gone"]
"""It begins now, and nobody else begins it; somebody has begun it; the lease is gone, and nobody may."""


class Marks(Protocol):
    """The verbs. Every write is durable when its call returns."""

    async def tell(self, task: TaskId, generation: int, fraction: float) -> None:
        """It is about to be said that the task is so far; less than before is not kept."""

    async def told(self, task: TaskId, generation: int) -> float:
        """How far it was said to be; 0 if nobody has."""

    async def put(self, lease: Lease, step: StepPath, mark: Mark) -> Kept:
        """In place of the one before; but not if the lease is gone, or a later attempt has spoken."""

    async def find(self, task: TaskId, step: StepPath) -> Mark | None:
        """The last one."""

    async def begin(self, lease: Lease, step: StepPath, attempt: int) -> Begun:
        """Of all that are asked to make this call, by whatever process, one hears "now"."""
