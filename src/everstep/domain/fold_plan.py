"""The part of `fold` about plans: how a task begins with one, gets another revision, or starts over with it."""

from collections.abc import Mapping

from everstep.domain import events as e
from everstep.domain.changes import changed
from everstep.domain.continued import Handover
from everstep.domain.fold_continued import set_variables
from everstep.domain.graph import first_gap, items_of
from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.limits import budget_of
from everstep.domain.resources import specs_of
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject
from everstep.domain.words import words_in


def begin(event: e.Recorded, body: e.TaskCreated, owner: str) -> TaskState:
    """A task as it is accepted."""
    specs = specs_of(body.plan)
    state = TaskState(
        id=event.task,
        owner=owner,
        plan=body.plan,
        plan_digest=body.plan_digest,
        first_digest=body.plan_digest,
        trusted=body.trusted,
        key=body.key,
        title=body.title,
        inputs=body.inputs,
        labels=body.labels,
        priority=body.priority,
        workspace=body.workspace,
        pause_after=body.pause_after,
        pause_timeout_ms=body.pause_timeout_ms,
        parent=body.parent,
        created_at=event.at,
        created_by=event.actor,
        updated_at=event.at,
        budget=budget_of(body.limits, body.deadline),
        specs=specs,
        steps={StepPath(name): StepState(StepPath(name)) for name in specs},
    )
    if body.continue_by is not None or body.unannounced:
        state.handover = Handover(continue_by=body.continue_by, unannounced=body.unannounced)
    return state


def task_reopened(state: TaskState, body: e.TaskReopened, _step: StepPath | None, at: Instant) -> None:
    """A new generation: outcomes that are superseded are gone, the others stand. Attempts and tries count on."""
    state.status = TaskStatus.QUEUED
    state.generation = body.generation
    state.recoveries = 0
    state.ended_at = state.cancelled_at = None
    state.outcome = state.outputs = state.error = state.failing = None
    state.issues = ()
    state.pause_after = None
    state.ended_first = 0
    state.budget.renewed(at)
    kept = frozenset(body.kept)
    for path in body.superseded:
        _supersede(state, path, items_stand=path in kept)
    for name, given in body.arguments.items():
        step = state.steps[StepPath(name)]
        step.arguments = {**(step.arguments or {}), **given}
    if state.plan.durable is not None:
        state.ends = [path for path in state.ends if state.steps[path].ended]
    of_the_plan = [state.steps[StepPath(name)] for name in state.specs]
    state.done = sum(step.ended for step in of_the_plan)
    state.under_way = 0


def _supersede(state: TaskState, path: StepPath, *, items_stand: bool) -> None:
    """A step as if it had never begun; with `items_stand` the items that completed keep their outcome."""
    old, begun = state.steps[path], items_of(state, path)
    new = state.steps[path] = StepState(path)
    new.attempts, new.tries, new.arguments = old.attempts, old.tries + bool(old.attempts), old.arguments
    new.asked, new.asked_after = old.asked, old.asked_after
    new.settled = settled_by(old)
    new.approval = new.spent = old.approval  # what is done anew is asked about anew
    for item in begun:
        if items_stand and item.status is StepStatus.COMPLETED:
            continue
        state.past[item.path] = (item.attempts, item.tries + bool(item.attempts), settled_by(item))
        del state.steps[item.path]
    if items_stand:
        new.items = old.items
        new.items_ended = sum(item.path in state.steps for item in begun)
        new.items_next = first_gap(state, path, 0)


def settled_by(step: StepState) -> int:
    """A step that completed begins anew; one that did not goes on where its calls have come to."""
    return step.attempts if step.status is StepStatus.COMPLETED else step.settled


def plan_revised(state: TaskState, body: e.PlanRevised, _step: StepPath | None, _at: Instant) -> None:
    """The remaining steps as they are now; what has begun keeps its state."""
    state.plan = changed(state.plan, body.diff)
    if state.plan.durable is not None:
        _asked(state, body)
        return
    state.plan_digest = body.digest
    state.revision = body.revision
    state.ended_first = 0
    state.specs = specs_of(state.plan)
    for change in body.diff:
        path = StepPath(change.id)
        if change.untrusted:
            state.strange[path] = None
        elif state.strange and change.op != "skip" and (change.op == "replace" or state.strange.get(path) is not None):
            state.strange.pop(path, None)
        if change.op == "append":
            state.steps[path] = StepState(path)
        elif change.step is not None:
            step = state.steps[path]
            step.arguments = step.grant = step.given = None
            step.spent = step.approval
            if step.attempts:
                step.tries += 1
                step.retries = 0


def _asked(state: TaskState, body: e.PlanRevised) -> None:
    """What a durable function calls next; or calls otherwise, where nothing has come of it yet."""
    state.revision = body.revision
    for change in body.diff:
        assert change.step is not None
        path = StepPath(change.id)
        state.specs[change.id] = change.step
        step = state.steps.setdefault(path, StepState(path))
        step.asked, step.asked_after = change.asked, len(state.ends)
        step.arguments = step.grant = None


def task_updated(state: TaskState, body: e.TaskUpdated, _step: StepPath | None, _at: Instant) -> None:
    """Words about the task, arguments of steps, and outcomes that another task takes back."""
    words = words_in(body.changes)
    state.title = state.title if words.title is None else words.title
    state.labels = state.labels if words.labels is None else words.labels
    state.priority = state.priority if words.priority is None else words.priority
    state.pause_timeout_ms = state.pause_timeout_ms if words.pause_timeout_ms is None else words.pause_timeout_ms
    arguments, undone = body.changes.get("arguments"), body.changes.get("undone")
    variables, stages = body.changes.get("variables"), body.changes.get("stages")
    if isinstance(stages, list):
        state.stages = tuple(str(stage) for stage in stages)
    if isinstance(variables, dict):
        set_variables(state, variables)
    if isinstance(arguments, dict):
        for name, given in arguments.items():
            assert isinstance(given, dict)
            state.steps[StepPath(name)].arguments = given
    if isinstance(undone, dict):
        task, steps = undone.get("by"), undone.get("steps")
        assert isinstance(task, str) and isinstance(steps, dict)
        for path, taken_by in steps.items():
            state.steps[StepPath(path)].undone_by = (TaskId(task), StepPath(str(taken_by)))


def note_givers(state: TaskState, event: e.Recorded) -> None:
    """Who has set arguments. Those of an edited call are not noted: whoever may approve it may edit it."""
    for path, arguments in _given(event).items():
        known = state.strange.get(path, frozenset[str]())
        if known is None:
            continue
        others = known - arguments.keys() if event.actor.kind is e.ActorKind.HUMAN else known | arguments.keys()
        if others:
            state.strange[path] = others
        else:
            state.strange.pop(path, None)


def _given(event: e.Recorded) -> Mapping[str, JsonObject]:
    match event.body:
        case e.PauseAnswered(answer=answer, arguments=dict() as arguments) if answer != "edit" and event.step:
            return {event.step: arguments}
        case e.TaskReopened(arguments=by_step):
            return by_step
        case e.TaskUpdated(changes={"arguments": dict() as by_step}):
            return {path: one for path, one in by_step.items() if isinstance(one, dict)}
        case _:
            return {}
