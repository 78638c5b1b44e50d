"""A paused task taken up by whoever it was handed to: one call, with arguments of its own, then it stands again.

The arguments are the client's word: they take the place of the plan's for this step, until somebody decides anew.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from everstep.domain.canonical import canonical_text
from everstep.domain.errors import Validation
from everstep.domain.failure import Failure
from everstep.domain.ids import Epoch, StepPath, WorkerId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonObject, JsonValue, Sealed

TAKEN_OVER = "workflow"
"""Who asked for the pause of a task that waits for its client."""
CLIENT, SERVER = "client", "server"
"""Who goes on after a call of the client's: it, or the engine."""
OWN: Final = "_workflow."
"""How variables begin that are not the client's."""
STRING_BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 10


@record
class Continued:
    """The call that a client makes in the place of a step."""

    step: StepPath
    arguments: Sealed
    key: str | None = None
    """The client's own name for it: the same again is the same call."""


@record
class TaskStarted:
    """A worker holds it; `continued`: only to make this call of a client's."""

    TYPE: ClassVar = "task.started"
    from_status: TaskStatus
    worker: WorkerId
    epoch: Epoch
    continued: Continued | None = None


@record
class TaskContinued:
    """What came of a client's call; without a step it matched none, and a task of its own made it."""

    TYPE: ClassVar = "task.continued"
    tool: str
    output: Sealed | None = None
    failure: Failure | None = None
    key: str | None = None


@dataclass(slots=True, kw_only=True)
class Handover:
    """What is between a task and a client that takes over. A part of the task's state."""

    continue_by: str | None = None
    unannounced: bool = False
    """It lives as long as the request that it answers; what would pause it ends it."""
    continuing: StepPath | None = None
    """The step of a client's call that has no outcome yet."""
    key: str | None = None
    """What the client calls that call."""
    alone: bool = False
    """The task was taken up for that call only: nothing else starts."""
    replies: dict[str, TaskContinued] = field(default_factory=dict)
    """What came of calls that their client has named."""
    extra: dict[str, TaskContinued] = field(default_factory=dict)
    """The latest call of each tool that was no step's."""
    variables: JsonObject = field(default_factory=dict)
    """Kept for the client under names of its own."""

    @property
    def takes_over(self) -> bool:
        """Whether somebody is there who can take over what fails."""
        return self.continue_by is not None or self.unannounced


@record
class ClientCall:
    """A call that a client wants made for a task."""

    tool: str
    arguments: JsonObject
    key: str | None = None


@record
class Done:
    """A client's word that a task is done."""

    result: JsonValue
    note: str | None = None


def is_shown(value: JsonValue, depth: int = DEPTH_MAX) -> bool:
    """Whether a value is shallow enough, and no text in it too long."""
    if isinstance(value, str):
        return len(value.encode()) <= STRING_BYTES_MAX
    if depth == 0:
        return False
    if isinstance(value, list):
        return all(is_shown(one, depth - 1) for one in value)
    return all(is_shown(one, depth - 1) for one in value.values()) if isinstance(value, dict) else True


def may_keep(kept: JsonObject, changes: JsonObject, bytes_max: int) -> None:
    """Raises Validation for a name that is ours, and for more than fits; null deletes."""
    for name, value in changes.items():
        if name.startswith(OWN):
            raise Validation(f"'{name}' is not the client's to set", what_to_do=f"use names without {OWN}")
        if not is_shown(value):
            message = f"'{name}' is nested too deeply, or has a text that is too long"
            raise Validation(message, what_to_do=f"at most {DEPTH_MAX} levels, and texts of {STRING_BYTES_MAX} bytes")
    whole: JsonObject = {name: value for name, value in {**kept, **changes}.items() if value is not None}
    size = len(canonical_text(whole).encode())
    if size > bytes_max:
        message = f"the variables would have {size} bytes, {bytes_max} are allowed"
        raise Validation(message, what_to_do="delete some with null, or raise `mcp.variables`")
