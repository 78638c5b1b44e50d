"""What one attempt came to. A new kind breaks the build wherever someone must think."""

from typing import Literal, TypeAlias

from everstep.domain.detour import Degraded
from everstep.domain.failure import Failure
from everstep.domain.handles import Left
from everstep.domain.ids import Digest, Instant
from everstep.domain.plan import PlanSpec
from everstep.domain.record import hot_record, record
from everstep.domain.usage import Usage
from everstep.domain.values import JsonObject, JsonValue, Sealed


@record
class Probe:
    """What a look at the world said about an interrupted call."""

    result: Literal["done", "not_done", "unknown"]
    output: Sealed | None = None


@hot_record
class Succeeded:
    """The tool answered."""

    output: Sealed
    summary: str | None = None
    wall_s: float = 0.0
    usage: Usage | None = None
    left: tuple[Left, ...] = ()
    """What it left beside its output."""
    cached_s: float | None = None
    """How old it is, if it was had before and kept."""


@record
class Failed:
    """The attempt ended without success; `probe` is there when its end was unclear and the tool could look."""

    failure: Failure
    ended: Literal["failed", "timed_out", "killed", "abandoned"] = "failed"
    called: bool = True
    probe: Probe | None = None
    wall_s: float = 0.0
    renewed: bool = False
    """Its credential was renewed since."""
    less: Degraded | None = None
    """The next rung down, if something ran out and the tool has one."""
    usage: Usage | None = None
    left: tuple[Left, ...] = ()


@record
class Asked:
    """The tool needs an answer first; it is called again with it."""

    question: str
    schema: JsonValue = None
    by: str = "anyone"
    usage: Usage | None = None


@record
class Waits:
    """A durable wait: the step completes with `output` when its time has come."""

    until: Instant
    output: Sealed


@record
class Listens:
    """A durable wait for a signal; past `until`, if there is one, it has failed."""

    event: str
    key: str | None
    until: Instant | None


@record
class Spawns:
    """A task of its own is to be made; the step waits for its end."""

    plan: PlanSpec
    digest: Digest
    inputs: JsonObject
    published: bool
    written: bool
    """Whether it stands in the plan of the step as it is, and is no value from elsewhere."""


@record
class Lost:
    """The call was cut off without an answer: its worker died, or (`why`) it was ended on purpose, to be called again.

    It uses up no retry.
    """

    probe: Probe | None = None
    why: Failure | None = None
    ended: Literal["killed", "abandoned"] = "abandoned"
    safe: bool = False
    """Whether it ended where the tool had said that nothing was half done."""


Outcome: TypeAlias = Succeeded | Failed | Asked | Waits | Listens | Spawns | Lost
