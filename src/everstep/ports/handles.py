"""Handles: what clients outside call a task, one name per generation. They prove nothing: the owner is asked too."""

from typing import Protocol

from everstep.domain.ids import Instant, Millis, TaskId
from everstep.domain.record import record
from everstep.domain.values import JsonObject


@record
class Handle:
    """A name for one generation of a task, and what its client said that is nobody else's business."""

    id: str
    """`mt_` and 32 characters of base64url: 192 random bits."""
    owner: str
    task: TaskId
    generation: int
    ttl_ms: Millis
    """How long it lasts after the task's end."""
    created_at: Instant
    notes: JsonObject
    """Questions that the client has put aside, and the like."""


class Handles(Protocol):
    """The verbs. A handle never changes whom it names."""

    async def keep(self, wanted: Handle) -> Handle:
        """The handle of this generation: this one, unless it has one already."""

    async def find(self, id: str) -> Handle | None:
        """By its name."""

    async def note(self, id: str, notes: JsonObject) -> None:
        """Merge into its notes; null deletes."""
