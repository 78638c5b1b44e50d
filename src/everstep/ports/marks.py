"""Marks: how far a task was said to be, and how far the calls of a step have come. No event tells of them."""

from typing import Protocol

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


class Marks(Protocol):
    """The verbs. Every write is durable when its call returns."""

    async def tell(self, task: TaskId, generation: int, fraction: float) -> None:
        """It is about to be said that the task is so far; less than before is not kept."""

    async def told(self, task: TaskId, generation: int) -> float:
        """How far it was said to be; 0 if nobody has."""

    async def put(self, lease: Lease, step: StepPath, mark: Mark) -> bool:
        """In place of the one before. False, and nothing kept: the lease is gone, or a later attempt has spoken."""

    async def find(self, task: TaskId, step: StepPath) -> Mark | None:
        """The last one."""
