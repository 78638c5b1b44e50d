"""Request: what a caller asks for, checked and complete."""

from collections.abc import Mapping

from everstep.domain.events import Actor
from everstep.domain.ids import Digest, Instant
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import PlanSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject


@record
class Request:
    """What a caller asks for: a checked plan with checked inputs."""

    plan: PlanSpec
    digest: Digest
    inputs: JsonObject
    actor: Actor
    owner: str
    trusted: bool
    workspace: str
    key: str | None = None
    title: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 1
    pause_after: str | None = None
    limits: TaskLimits | None = None
    deadline: Instant | None = None
