"""Tasks, commits and commands as plain facts, for suites that speak to a store without an engine."""

import os
from dataclasses import replace
from itertools import count

from everstep.domain import events as e
from everstep.domain import task as t
from everstep.domain.events import Actor, ActorKind, Draft
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.fold import apply
from everstep.domain.ids import Epoch, Instant, PauseId, Seq, StepPath, TaskId, WorkerId
from everstep.domain.pauses import Pause, UserRequested
from everstep.domain.plan import Effect, PlanSpec, StepSpec
from everstep.domain.values import JsonValue, Sealed
from everstep.ports.store import Claim, Worker
from everstep.wire.plan import digest
from everstep.wire.values import Codec

CODEC = Codec()
NOW = Instant(1_800_000_000_000)
HUMAN = Actor(kind=ActorKind.HUMAN, id="local", via="python")
PLAN = PlanSpec(
    name="brief",
    steps=tuple(
        StepSpec(id=name, tool="echo", arguments={"text": name}, bind=name) for name in ("one", "two", "three")
    ),
    outputs={"said": "${three}"},
)
ONE, TWO, THREE = (StepPath(step.id) for step in PLAN.steps)

_numbers = count(1)


def _next() -> str:
    """Never twice, not even in two processes."""
    return f"{os.getpid():012d}{next(_numbers):014d}"


def task_id() -> TaskId:
    """A fresh name."""
    return TaskId(f"t_{_next()}")


def pause_id() -> PauseId:
    """A fresh name."""
    return PauseId(f"p_{_next()}")


def worker(at: Instant = NOW, pid: int = 1) -> Worker:
    """A fresh incarnation."""
    name = WorkerId(f"w_{_next()}")
    return Worker(id=name, name="test", host="here", pid=pid, version="0", started_at=at, heartbeat_at=at)


def new_task(
    *, key: str | None = None, owner: str = "local", inputs: JsonValue = None, priority: int = 1, at: Instant = NOW
) -> t.NewTask:
    """A plan of three steps on its way in."""
    sealed = CODEC.seal(inputs if inputs is not None else {})
    return of_plan(PLAN, sealed, key=key, owner=owner, priority=priority, at=at)


def of_plan(
    plan: PlanSpec,
    inputs: Sealed,
    *,
    key: str | None = None,
    owner: str = "local",
    priority: int = 1,
    at: Instant = NOW,
) -> t.NewTask:
    """Any plan on its way in."""
    named = digest(plan)
    body = e.TaskCreated(
        plan=plan,
        plan_digest=named,
        trusted=True,
        key=key,
        title=f"Title of {plan.name}",
        inputs=inputs,
        labels={},
        priority=priority,
        workspace="",
    )
    return t.NewTask(
        id=task_id(),
        owner=owner,
        plan_name=plan.name,
        plan_digest=named,
        inputs_digest=inputs.digest,
        key=key,
        title=body.title,
        priority=priority,
        steps=len(plan.steps),
        at=at,
        actor=HUMAN,
        created=Draft(body=body),
        live_max=10_000,
        tools=tuple(sorted({step.tool for step in plan.steps if step.tool})),
    )


def claim(by: Worker, limit: int = 100, at: Instant = NOW, *, only: frozenset[TaskId] | None = None) -> Claim:
    """As many as there are."""
    return Claim(worker=by.id, at=at, limit=limit, only=only)


def proposal(step: StepPath, value: JsonValue = None, attempt: int = 1) -> t.Proposal:
    """A call that could start."""
    return t.Proposal(
        step=step,
        attempt=attempt,
        tool="echo",
        tool_version="1",
        effect=Effect.PURE,
        idempotency_key=f"key-{step}-{attempt}",
        input=CODEC.seal({"text": step} if value is None else value),
    )


def completed(step: StepPath, value: JsonValue = "done") -> Draft:
    """A step that succeeded."""
    body = e.StepCompleted(
        attempt=1,
        output=CODEC.seal(value),
        summary=None,
        via="tool",
        tool_used="echo",
        duration_s=0.5,
        wall_s=0.25,
    )
    return Draft(body=body, step=step)


def failed_attempt(step: StepPath, code: str) -> Draft:
    """A call that failed."""
    failure = Failure(
        code=code,
        category=Category.TRANSIENT,
        message="down",
        what_to_do="wait",
        effect_state=EffectState.NONE,
    )
    error = e.ErrorRecord(id=f"e_{code}", failure=failure, attempt=1)
    body = e.AttemptFailed(attempt=1, error=error, effect_state=EffectState.NONE, called=True, duration_s=0.5)
    return Draft(body=body, step=step)


def finished() -> Draft:
    """A task that completed."""
    body = e.TaskCompleted(outcome="success", outputs=CODEC.seal({}), issues=(), duration_s=1.0, work_s=0.5)
    return Draft(body=body)


def paused(step: StepPath | None = None) -> tuple[PauseId, Draft, Draft]:
    """Somebody asks for a pause, and it takes effect."""
    name = pause_id()
    pause = Pause(id=name, step=step, reason=UserRequested(by="local", note=None), title="Paused", why="asked for")
    told = e.TaskPaused(pause=name, reason_type=pause.type)
    return name, Draft(body=e.PauseOpened(pause=pause), step=step), Draft(body=told)


def note(text: str) -> Draft:
    """An event without a meaning, as a newer version might write it."""
    return Draft(body=e.Unknown(type="note.made", data={"text": text}))


def first_event(new: t.NewTask) -> e.Recorded:
    """How a new task's journal will begin."""
    return e.Recorded(
        task=new.id, seq=Seq(1), at=new.at, generation=1, actor=new.actor, step=None, body=new.created.body
    )


def started_event(state: t.TaskState, by: Worker) -> e.Recorded:
    """How it will go on when this worker claims it."""
    body = e.TaskStarted(from_status=state.status, worker=by.id, epoch=Epoch(state.epoch + 1))
    actor = e.Actor(kind=e.ActorKind.SYSTEM, id=by.id, via="engine")
    return e.Recorded(task=state.id, seq=Seq(state.seq + 1), at=NOW, generation=1, actor=actor, step=None, body=body)


def waits(state: t.TaskState, until: Instant) -> Draft:
    """The first step waits for a time."""
    body = e.StepWaiting(kind="time", detail="wait", until=until)
    return Draft(body=body, step=next(iter(state.steps)))


def step_commit(
    state: t.TaskState, *drafts: Draft, proposals: tuple[t.Proposal, ...] = (), at: Instant = NOW
) -> t.StepCommit:
    """A holder's commit as the engine makes it: events applied to the state, the row read off."""
    assert state.worker is not None
    lease = t.Lease(task=state.id, epoch=state.epoch, worker=state.worker)
    last_seq, generation = state.seq, state.generation
    _apply(state, drafts, at)
    return t.StepCommit(
        lease=lease,
        last_seq=last_seq,
        generation=generation,
        at=at,
        drafts=drafts,
        proposals=proposals,
        row=t.row_of(state),
        release=state.worker is None,
    )


def command(
    state: t.TaskState, *drafts: Draft, pause: PauseId | None = None, at: Instant = NOW, guarded: bool = False
) -> t.Command:
    """A command as the engine makes it."""
    status, generation, last_seq = state.status, state.generation, state.seq
    _apply(state, drafts, at)
    return t.Command(
        task=state.id,
        status=status,
        generation=generation,
        pause=pause,
        actor=HUMAN,
        at=at,
        drafts=drafts,
        row=t.row_of(state),
        last_seq=last_seq if guarded else None,
    )


def sweep(state: t.TaskState, at: Instant = NOW) -> t.Sweep:
    """A dead worker's task on its way to `stalled`."""
    status, epoch, holder = state.status, state.epoch, state.worker
    recovered = e.TaskRecovered(
        from_status=status,
        reason="worker_dead",
        worker=holder,
        epoch=Epoch(epoch + 1),
        last_heartbeat_at=NOW,
        threshold_s=30.0,
        recoveries=state.recoveries + 1,
        steps=(),
    )
    drafts = (Draft(body=recovered),)
    _apply(state, drafts, at)
    return t.Sweep(task=state.id, status=status, epoch=epoch, worker=holder, at=at, drafts=drafts, row=t.row_of(state))


def with_status(row: t.TaskRow, status: object) -> t.TaskRow:
    """A row that says anything."""
    return replace(row, status=status)  # type: ignore[arg-type]


def later(seconds: float) -> Instant:
    """Since the beginning."""
    return Instant(NOW + round(seconds * 1000))


def _apply(state: t.TaskState, drafts: tuple[Draft, ...], at: Instant) -> None:
    for draft in drafts:
        apply(state, draft.body, draft.step, at)
