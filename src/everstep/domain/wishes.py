"""What somebody asks of a task: to be taken up again, copied, changed or taken back."""

from collections.abc import Mapping, Sequence

from everstep.domain.patch import Op
from everstep.domain.record import record
from everstep.domain.values import JsonObject


@record
class Retry:
    """Again from a step; none: from the first that failed."""

    from_step: str | None = None
    arguments: Mapping[str, JsonObject]
    note: str | None = None
    confirm_effects: bool = False


@record
class Fork:
    """A new task with the outcomes of another, up to a step."""

    from_step: str
    inputs: JsonObject
    arguments: Mapping[str, JsonObject]
    title: str | None = None
    note: str | None = None
    key: str | None = None


@record
class Patch:
    """Changes of what has not begun."""

    base_revision: int
    ops: Sequence[Op]
    trusted: bool
    """Whether it comes from someone whose plans are trusted; what a stranger changes is a stranger's."""
    note: str | None = None


@record
class Undo:
    """Take back what was done; no steps: all that completed."""

    steps: Sequence[str] | None = None
    note: str | None = None
    key: str | None = None
