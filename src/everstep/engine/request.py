"""Request: what a caller asks for, checked and complete."""

from collections.abc import Mapping

from everstep.domain.bindings import Absent, Found, compile_value, render
from everstep.domain.events import Actor, Link
from everstep.domain.ids import Digest, Instant, Millis, TaskId
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import PlanSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject


class _Inputs:
    """All that a title may bind before there is a task."""

    def __init__(self, inputs: JsonObject, task: JsonObject) -> None:
        self._roots = {"inputs": inputs, "task": task}

    def root(self, name: str) -> Found | Absent:
        value = self._roots.get(name)
        return Absent(why="unknown") if value is None else Found(value=value)

    def step(self, id: str) -> None:
        """No step has begun."""


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
    pause_timeout_ms: Millis | None = None
    parent: Link | None = None
    limits: TaskLimits | None = None
    deadline: Instant | None = None
    continue_by: str | None = None
    unannounced: bool = False

    def titled(self, task: TaskId) -> str:
        """What the task is called."""
        title = self.title or self.plan.title or self.plan.name
        if self.title is None and "${" in title:
            return render(compile_value(title), _Inputs(self.inputs, {"id": task, "plan": self.plan.name}))
        return title
