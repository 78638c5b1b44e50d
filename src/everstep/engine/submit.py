"""A plan on its way in: its problems, or a durable queued task."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from everstep.domain.bindings import Absent, Found, compile_value, render
from everstep.domain.errors import Conflict, Validation
from everstep.domain.events import Draft, Recorded, TaskCreated
from everstep.domain.fold import fold
from everstep.domain.ids import KEY, Seq, TaskId
from everstep.domain.record import record
from everstep.domain.task import Intent, NewTask, TaskState
from everstep.domain.values import JsonObject
from everstep.engine.commit import HeldTask, begin_here, granted
from everstep.engine.kit import Kit
from everstep.engine.recover import missing_tools
from everstep.engine.request import Request
from everstep.ports.store import Created, KeyTaken


@record
class Submitted:
    """The task that stands for a request; `state` only if it was made now."""

    task: TaskId
    snapshot: TaskState | None
    """As it was accepted, for the caller; nobody changes it."""
    begun: "Begun | None" = None
    queued: TaskState | None = None
    """The same for the loop, which will."""


@record
class Begun:
    """The task is under way already: claimed and begun in the transaction that created it."""

    held: HeldTask
    intents: Sequence[Intent]


class _Inputs:
    """All that a title may bind before there is a task."""

    def __init__(self, inputs: JsonObject, task: JsonObject) -> None:
        self._roots = {"inputs": inputs, "task": task}

    def root(self, name: str) -> Found | Absent:
        value = self._roots.get(name)
        return Absent(why="unknown") if value is None else Found(value=value)

    def step(self, id: str) -> None:
        """No step has begun."""


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
    if request.key is not None and not KEY.fullmatch(request.key):
        raise Validation(
            f"'{request.key}' is no task key", what_to_do="use 1 to 128 letters, digits, '.', '_', '-'; not t_… or mt_…"
        )
    new, created = _new_task(request, kit)
    inputs = created.inputs
    begun = None
    if inputs.by_reference and inputs.raw is not None:
        await kit.store.put_payloads([(inputs.digest, inputs.raw)])
    elif places.place_for(new.id):
        state = _queued(new, created, request.owner)
        begun = None if missing_tools(state, kit) else begin_here(state, kit, new.at)
    started = False
    try:
        (result,) = await kit.store.create_tasks((new if begun is None else replace(new, first=begun[1]),))
        started = isinstance(result, Created) and result.committed is not None
    finally:
        if not started:
            places.give_back(new.id)
    if isinstance(result, KeyTaken):
        raise Conflict(
            f"the key '{request.key}' belongs to task {result.task} of another plan or other inputs",
            code="idempotency_conflict",
            what_to_do="use another key",
            details={"task": result.task},
        )
    if not result.new:
        return Submitted(task=result.task, snapshot=None)
    kit.feed.publish(result.events)
    snapshot = _queued(new, created, request.owner)
    if begun is None or result.committed is None:
        return Submitted(task=new.id, snapshot=snapshot, queued=_queued(new, created, request.owner))
    held = begun[0]
    intents = granted(held, result.committed, new.at)
    return Submitted(task=new.id, snapshot=snapshot, begun=Begun(held=held, intents=intents))


def _queued(new: NewTask, created: TaskCreated, owner: str) -> TaskState:
    recorded = Recorded(task=new.id, seq=Seq(1), at=new.at, generation=1, actor=new.actor, step=None, body=created)
    return fold(None, owner, recorded)


def _new_task(request: Request, kit: Kit) -> tuple[NewTask, TaskCreated]:
    plan = request.plan
    at = kit.clock.now()
    task = TaskId(kit.entropy.new_id("t"))
    inputs = kit.codec.seal(request.inputs)
    title = request.title or plan.title or plan.name
    if request.title is None and "${" in title:
        title = render(compile_value(title), _Inputs(request.inputs, {"id": task, "plan": plan.name}))
    created = TaskCreated(
        plan=plan,
        plan_digest=request.digest,
        trusted=request.trusted,
        key=request.key,
        title=title,
        inputs=inputs,
        labels=dict(request.labels or {}),
        priority=request.priority,
        workspace=request.workspace,
        pause_after=request.pause_after,
        limits=request.limits,
        deadline=request.deadline,
    )
    new = NewTask(
        id=task,
        owner=request.owner,
        plan_name=plan.name,
        plan_digest=request.digest,
        inputs_digest=inputs.digest,
        key=request.key,
        title=title,
        priority=request.priority,
        steps=len(plan.steps) + len(plan.finally_steps),
        at=at,
        actor=request.actor,
        created=Draft(body=created),
        live_max=kit.limits.live_tasks_of(request.owner),
        labels=created.labels,
        tools=tuple(sorted({step.tool for step in plan.steps if step.tool is not None})),
    )
    return new, created
