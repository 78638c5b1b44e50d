"""Patch: another revision of a task's remaining plan, as one guarded command."""

from everstep.domain import events as e
from everstep.domain.commands import Drafts, illegal
from everstep.domain.errors import Conflict
from everstep.domain.ids import Digest, StepPath, TaskId
from everstep.domain.patch import Revision, by_stranger, revise
from everstep.domain.record import record
from everstep.domain.states import TERMINAL, StepStatus, TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.wishes import Patch
from everstep.engine.accept import Naming, accept_plan, strangers_problems
from everstep.engine.control import command, load
from everstep.engine.kit import Kit


@record
class Revised:
    """What came of it, or would."""

    revision: int
    digest: Digest
    diff: Revision
    task: TaskState


async def plan_patch(task: TaskId, who: e.Who, wish: Patch, kit: Kit, *, name: Naming) -> Revised:
    """What a patch would make of the plan; nothing is changed."""
    state = await load(task, who, kit)
    revision = _revision(state, wish, kit)
    _accept(state, wish, revision, kit)
    return Revised(revision=state.revision + 1, digest=name(revision.plan), diff=revision, task=state)


async def patch(task: TaskId, who: e.Who, wish: Patch, kit: Kit, *, name: Naming) -> Revised:
    """Change what has not begun: all of it or nothing."""
    made: list[tuple[Revision, Digest]] = []

    def decide(state: TaskState) -> tuple[Drafts, None]:
        revision = _revision(state, wish, kit)
        _accept(state, wish, revision, kit)
        digest = name(revision.plan)
        made.append((revision, digest))
        body = e.PlanRevised(
            revision=state.revision + 1,
            digest=digest,
            base_digest=state.plan_digest,
            diff=revision.diff,
            note=wish.note,
        )
        return (e.Draft(body=body), *_consequences(state, revision)), None

    kit.fault("revise.decide.before")
    after = await command(task, who, kit, decide)
    revision, digest = made[-1]
    return Revised(revision=after.revision, digest=digest, diff=revision, task=after)


def _revision(state: TaskState, wish: Patch, kit: Kit) -> Revision:
    if state.status in TERMINAL:
        raise Conflict(
            f"the task is {state.status.value}, its plan cannot change any more",
            code="task_terminal",
            what_to_do=f"retry or fork it: everstep fork {state.id} --from STEP",
            details={"status": state.status.value},
        )
    if state.plan.durable is not None:
        raise Conflict(
            f"'{state.plan.name}' is a durable function: its calls come from its code",
            what_to_do=f"change the code, then fork: everstep fork {state.id} --from STEP",
        )
    if state.status is TaskStatus.CANCELLING:
        raise illegal(state, "patch")
    if wish.base_revision != state.revision:
        raise Conflict(
            f"the plan is at revision {state.revision}, the patch was made for {wish.base_revision}",
            code="patch.stale_revision",
            what_to_do=f"look at the plan as it is, then decide: everstep show {state.id} --plan",
            details={"revision": state.revision},
        )
    revision = revise(state, wish.ops, kit.catalog.effect_of)
    return revision if wish.trusted or not state.trusted else by_stranger(revision)


def _accept(state: TaskState, wish: Patch, revision: Revision, kit: Kit) -> None:
    """The whole new plan is checked like any other; raises PlanError."""
    changed = {change.id for change in revision.diff if change.step is not None}
    also = strangers_problems(revision.plan, changed, kit) if state.trusted and not wish.trusted else ()
    accept_plan(revision.plan, kit, trusted=state.trusted, owner=state.owner, also=also)


def _consequences(state: TaskState, revision: Revision) -> Drafts:
    """Questions about a changed call are withdrawn, so that it is asked anew; what is skipped has ended."""
    names = list(dict.fromkeys(change.id for change in revision.diff))
    steps = [state.steps[StepPath(name)] for name in names if name in state.steps]
    pauses = [(step.pause, step.path) for step in steps if step.status is StepStatus.PAUSED and step.pause is not None]
    skipped = dict.fromkeys(StepPath(change.id) for change in revision.diff if change.op == "skip")
    drafts = [e.Draft(body=e.PauseWithdrawn(pause=pause, why="the plan was changed"), step=at) for pause, at in pauses]
    drafts += [e.Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=path) for path in skipped]
    if pauses and state.status is TaskStatus.PAUSED and not state.held_back:
        drafts.append(e.Draft(body=e.TaskResumed(pause=pauses[0][0], to=TaskStatus.QUEUED)))
    return tuple(drafts)
