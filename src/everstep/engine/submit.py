"""A plan on its way in: its problems, or a durable queued task."""

from collections.abc import Sequence
from typing import Protocol

from everstep.domain.errors import Conflict, Validation
from everstep.domain.events import Draft, Recorded, TaskCreated
from everstep.domain.fold import fold
from everstep.domain.ids import KEY, Seq, TaskId
from everstep.domain.record import record
from everstep.domain.task import Intent, NewTask, StepCommit, TaskState
from everstep.engine.accept import usual_limits
from everstep.engine.commit import HeldTask, begin_here, granted
from everstep.engine.kit import Kit
from everstep.engine.request import Request
from everstep.engine.stall import missing_tools
from everstep.ports.store import Created, KeyTaken, Stale


@record
class Submitted:
    """The task that stands for a request; `state` only if it was made now."""

    task: TaskId
    snapshot: TaskState | None
    """As it was accepted, for the caller; nobody changes it."""
    begun: "Begun | None" = None
    queued: TaskState | None = None
    """The same for the loop, which will."""
    asked: TaskCreated | None = None
    """What was asked for, where the key has a task already."""


@record
class Begun:
    """The task is under way already: claimed and begun in the transaction that created it."""

    held: HeldTask
    intents: Sequence[Intent]


class Places(Protocol):
    """Who carries tasks here."""

    def place_for(self, task: TaskId) -> bool:
        """Whether a new task may begin at once; keeps the place."""

    def give_back(self, task: TaskId) -> None:
        """It does not begin here after all."""


async def submit(request: Request, kit: Kit, places: Places) -> Submitted:
    """Make the request durable. The same owner, key, plan and inputs give the same task.

    If there is a place for it here and now, it begins in the same transaction.
    """
    task = TaskId(kit.entropy.new_id("t"))
    event, created = _event(request, task, kit)
    at = event.at
    inputs = created.inputs
    begun, started = None, False
    try:
        if inputs.by_reference and inputs.raw is not None:
            await kit.store.put_payloads([(inputs.digest, inputs.raw)])
        elif places.place_for(task):
            state = fold(None, request.owner, event)
            begun = None if missing_tools(state, kit) else begin_here(state, kit, at)
        new = _new_task(request, event, created, None if begun is None else begun[1], kit=kit)
        (result,) = await kit.store.create_tasks((new,))
        started = isinstance(result, Created) and result.committed is not None
    finally:
        if not started:
            places.give_back(task)
    assert not isinstance(result, Stale), "nothing but the task is written"
    if isinstance(result, KeyTaken):
        raise key_taken(request.key, result)
    if not result.new:
        return Submitted(task=result.task, snapshot=None, asked=created)
    kit.feed.publish(result.events)
    kit.figures.created += 1
    snapshot = fold(None, request.owner, event)
    if begun is None or result.committed is None:
        return Submitted(task=task, snapshot=snapshot, queued=fold(None, request.owner, event))
    held = begun[0]
    intents = granted(held, result.committed)
    return Submitted(task=task, snapshot=snapshot, begun=Begun(held=held, intents=intents))


async def create(new: NewTask, kit: Kit) -> Submitted | None:
    """A task that is made of another one: it is claimed like any other. None if its commands do not stand."""
    created = new.created.body
    assert isinstance(created, TaskCreated)
    if created.inputs.by_reference and created.inputs.raw is not None:
        await kit.store.put_payloads([(created.inputs.digest, created.inputs.raw)])
    (result,) = await kit.store.create_tasks((new,))
    if isinstance(result, KeyTaken):
        raise key_taken(new.key, result)
    if isinstance(result, Stale):
        return None
    if not result.new:
        return Submitted(task=result.task, snapshot=None, asked=created)
    kit.feed.publish(result.events)
    kit.figures.created += 1
    return Submitted(task=result.task, snapshot=None)


def key_taken(key: str | None, by: KeyTaken) -> Conflict:
    """The refusal of a key that means another task."""
    return Conflict(
        f"the key '{key}' belongs to task {by.task} of another plan or other inputs",
        code="idempotency_conflict",
        what_to_do="use another key",
        details={"task": by.task},
    )


def queued(new: NewTask) -> TaskState:
    """The state of a task that was created a moment ago."""
    body = new.created.body
    recorded = Recorded(task=new.id, seq=Seq(1), at=new.at, generation=1, actor=new.actor, step=None, body=body)
    return fold(None, new.owner, recorded)


def new_task(request: Request, kit: Kit, id: TaskId | None = None) -> tuple[NewTask, TaskCreated]:
    """The task that stands for a request, on its way into the store."""
    event, created = _event(request, id or TaskId(kit.entropy.new_id("t")), kit)
    return _new_task(request, event, created, None, kit=kit), created


def _event(request: Request, task: TaskId, kit: Kit) -> tuple[Recorded, TaskCreated]:
    """How the journal of the task will begin."""
    if request.key is not None and not KEY.fullmatch(request.key):
        raise Validation(
            f"'{request.key}' is no task key", what_to_do="use 1 to 128 letters, digits, '.', '_', '-'; not t_… or mt_…"
        )
    created, at = _created(request, task, kit), kit.clock.now()
    event = Recorded(task=task, seq=Seq(1), at=at, generation=1, actor=request.actor, step=None, body=created)
    return event, created


def _created(request: Request, task: TaskId, kit: Kit) -> TaskCreated:
    plan = request.plan
    return TaskCreated(
        plan=plan,
        plan_digest=request.digest,
        trusted=request.trusted,
        key=request.key,
        title=request.titled(task),
        inputs=kit.codec.seal(request.inputs),
        labels=dict(request.labels or {}),
        priority=request.priority,
        workspace=request.workspace,
        pause_after=request.pause_after,
        pause_timeout_ms=request.pause_timeout_ms,
        parent=request.parent,
        limits=request.limits or usual_limits(plan, kit),
        deadline=request.deadline,
        continue_by=request.continue_by,
        unannounced=request.unannounced,
    )


def _new_task(
    request: Request, event: Recorded, created: TaskCreated, first: StepCommit | None, *, kit: Kit
) -> NewTask:
    plan = request.plan
    return NewTask(
        id=event.task,
        owner=request.owner,
        plan_name=plan.name,
        plan_digest=request.digest,
        inputs_digest=created.inputs.digest,
        key=request.key,
        title=created.title,
        priority=request.priority,
        steps=len(plan.steps) + len(plan.finally_steps),
        at=event.at,
        actor=event.actor,
        created=Draft(created),
        live_max=None if _is_child(request) else kit.limits.live_tasks_of(request.owner),
        labels=created.labels,
        tools=tuple(sorted({step.tool for step in plan.steps if step.tool is not None})),
        first=first,
    )


def _is_child(request: Request) -> bool:
    """A task that a step of another one waits for counts with that one."""
    return request.parent is not None and request.parent.link == "child_of"
