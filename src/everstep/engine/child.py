"""A step that is a task of its own: made once, waited for without holding anything, ended with its parent."""

from dataclasses import replace
from typing import Final

from everstep.domain.errors import Conflict, PlanError
from everstep.domain.events import Link, Who
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import StepPath, TaskId, child_id
from everstep.domain.outcome import Failed, Outcome, Spawns, Succeeded
from everstep.domain.task import TaskState
from everstep.domain.values import Sealed
from everstep.engine import control
from everstep.engine.accept import accept_inputs, accept_plan, with_defaults
from everstep.engine.commit import HeldTask
from everstep.engine.kit import Kit
from everstep.engine.request import Request
from everstep.engine.submit import new_task

DEPTH_MAX: Final = 5


async def prepare(held: HeldTask, path: StepPath, wanted: Spawns, kit: Kit) -> Outcome:
    """Check the plan of a child and have it ready for the commit; a failure if it may not be one."""
    state = held.state
    attempt = state.steps[path].attempt
    refused = await _refused(state, path, wanted, kit)
    if refused is not None or attempt is None:
        return wanted if refused is None else Failed(failure=refused)
    request = Request(
        plan=wanted.plan,
        digest=wanted.digest,
        inputs=with_defaults(wanted.plan, wanted.inputs),
        actor=kit.actor,
        owner=state.owner,
        trusted=_trusted(state, path, wanted),
        workspace=state.workspace,
        labels=state.labels,
        priority=state.priority,
        parent=Link(task=state.id, step=path, link="child_of"),
    )
    child, created = new_task(request, kit, child_id(attempt.idempotency_key))
    if created.inputs.by_reference and created.inputs.raw is not None:
        await kit.store.put_payloads([(created.inputs.digest, created.inputs.raw)])
    held.newborn[path] = child
    return wanted


def _trusted(state: TaskState, path: StepPath, wanted: Spawns) -> bool:
    """Plans that the operator publishes, or that stand in a step somebody vouches for; a plan out of data is data."""
    return wanted.published or (wanted.written and state.vouches_for(path))


async def _refused(state: TaskState, path: StepPath, wanted: Spawns, kit: Kit) -> Failure | None:
    if not wanted.published and not state.vouches_for(path):
        return _failure("policy_denied", "this plan may only use plans that the operator publishes by name")
    if await _depth(state, kit) >= DEPTH_MAX:
        return _failure("plan_too_deep", f"tasks make tasks {DEPTH_MAX} deep at most")
    try:
        accept_plan(wanted.plan, kit, trusted=_trusted(state, path, wanted), owner=state.owner)
        accept_inputs(wanted.plan, wanted.inputs, kit)
    except PlanError as error:
        named = "; ".join(f"{problem.path} {problem.message}" for problem in error.problems[:3])
        return _failure(error.code, f"{error.message}: {named}")
    return None


def _failure(code: str, message: str) -> Failure:
    return Failure(
        code=code,
        category=Category.PERMISSION if code == "policy_denied" else Category.CONFIGURATION,
        message=message,
        what_to_do="correct the plan that the step names",
        effect_state=EffectState.NONE,
    )


async def _depth(state: TaskState, kit: Kit) -> int:
    """How many parents stand above it."""
    depth, above = 1, state.parent
    while above is not None and above.link == "child_of" and depth < DEPTH_MAX:
        (parent,) = await kit.store.load_tasks((above.task,))
        depth, above = depth + 1, None if parent is None else parent.parent
    return depth


async def child_ends(state: TaskState, kit: Kit) -> list[tuple[StepPath, Outcome]]:
    """Steps whose task has ended, with what that means for them."""
    paths = list(state.children)
    children = await kit.store.load_tasks([state.children[path] for path in paths])
    found = zip(paths, children, strict=True)
    return [(path, _meaning(state.children[path], child)) for path, child in found if child is None or child.terminal]


def _meaning(task: TaskId, child: TaskState | None) -> Outcome:
    if child is not None and child.outputs is not None:
        given = child.outputs
        output = Sealed(
            given.value,
            given.digest,
            given.size_bytes,
            untrusted=True,
            by_reference=given.by_reference,
            present=given.present,
        )
        return Succeeded(output=output, summary=f"{child.title}: {child.outcome}")
    status = "gone" if child is None else child.status.value
    why = f"task {task} is {status}"
    cause = child.error.failure if child is not None and child.error is not None else None
    failure = Failure(
        code="child_failed",
        category=Category.LOGIC,
        message=why if cause is None else f"{why}: {cause.message}",
        what_to_do=f"look at it: everstep show {task}",
        effect_state=EffectState.MADE,
        details={"task": task, "status": status},
        cause=cause,
    )
    return Failed(failure=failure)


async def cancel_children(state: TaskState, kit: Kit) -> None:
    """Send the cancel on; sent again at recovery, for what holds is not said twice."""
    who = Who(owner=state.owner, actor=kit.actor)
    for child in await kit.store.load_tasks(list(state.children.values())):
        if child is None or child.terminal:
            continue
        if child.cancelled_at is None or (state.hurried and not child.hurried):
            try:
                await control.cancel(child.id, who, f"its parent {state.id} was cancelled", kit)
            except Conflict:  # it has ended meanwhile
                continue
        kit.carry(child.id)


async def pass_on_pause(state: TaskState, kit: Kit) -> None:
    """Children stand still with their parent, and go on with it: only what the parent's pause set is lifted."""
    parent = Who(owner=state.owner, actor=replace(kit.actor, id=state.id))
    for child in await kit.store.load_tasks(list(state.children.values())):
        if child is None or child.terminal or child.cancelled_at is not None:
            continue
        ours = any(getattr(pause.reason, "by", None) == state.id for pause in child.pauses.values())
        if state.held_back and not child.held_back:
            note = f"its parent {state.id} is paused"
            mode = None if state.pausing is None else state.pausing.mode
            after = await control.pause(child.id, parent, note, kit, mode=mode)
        elif ours and not state.held_back:
            after = await control.resume(child.id, parent, f"its parent {state.id} goes on", kit)
        else:
            continue
        kit.carry(child.id)
        await pass_on_pause(after, kit)


async def heed_parent(state: TaskState, kit: Kit) -> None:
    """A child that is taken up: its parent may have been paused when nobody was there to pass that on."""
    if state.parent is None or state.parent.link != "child_of" or state.held_back:
        return
    (parent,) = await kit.store.load_tasks((state.parent.task,))
    if parent is not None and parent.held_back and state.id in parent.children.values():
        await pass_on_pause(parent, kit)
