"""Where a task comes from, and what starts over or changes it: the facts, and the events that keep them."""

from dataclasses import replace
from typing import ClassVar, Literal, TypeAlias

from everstep.domain import continued
from everstep.domain.ids import Digest, StepPath, TaskId
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject, Sealed

TaskStarted: TypeAlias = continued.TaskStarted
TaskContinued: TypeAlias = continued.TaskContinued
LinkKind: TypeAlias = Literal["fork_of", "undo_of", "child_of", "extra_of"]


@record
class Link:
    """Where a task comes from."""

    task: TaskId
    step: StepPath | None
    link: LinkKind


@record
class Change:
    """One change of a plan, ready to be made: a whole step in its place; `skip` changes no step."""

    op: Literal["append", "replace", "set", "skip"]
    id: str
    step: StepSpec | None = None
    after: str | None = None
    note: str | None = None
    untrusted: bool = False
    """Whether a stranger wrote the step: nobody vouches for it, whoever wrote the rest of the plan."""
    asked: Sealed | None = None
    """The arguments with which a durable function calls it; the step itself has none then."""


def changed(plan: PlanSpec, changes: tuple[Change, ...]) -> PlanSpec:
    """The plan after these changes; whether they are allowed has been decided before."""
    steps, final = list(plan.steps), list(plan.finally_steps)
    for change in changes:
        if change.step is None:
            continue
        if change.op == "append":
            ids = [] if change.after is None else [step.id for step in steps]
            steps.insert(len(steps) if change.after is None else ids.index(change.after) + 1, change.step)
            continue
        for line in (steps, final):
            line[:] = [change.step if step.id == change.id else step for step in line]
    return replace(plan, steps=tuple(steps), finally_steps=tuple(final))


@record
class TaskReopened:
    TYPE: ClassVar = "task.reopened"
    generation: int
    from_step: StepPath
    kept: tuple[StepPath, ...]
    superseded: tuple[StepPath, ...]
    arguments: dict[str, JsonObject]
    note: str | None = None


@record
class PlanRevised:
    TYPE: ClassVar = "plan.revised"
    revision: int
    digest: Digest
    base_digest: Digest
    diff: tuple[Change, ...]
    note: str | None = None


@record
class TaskUpdated:
    TYPE: ClassVar = "task.updated"
    changes: JsonObject
