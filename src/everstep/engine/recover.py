"""A dead worker's tasks: stalled -> effect rule -> front of the walk.

The scan moves them (`task.recovered`, guarded, one event per move); whoever claims one later turns each interrupted
call into the outcome `Lost`, which goes through `decide` and `commit` like any other.
"""

from collections.abc import Sequence

from everstep.domain import events as e
from everstep.domain.consequence import spec_of
from everstep.domain.decide import WORKER_LOST
from everstep.domain.effects import expected_decision
from everstep.domain.errors import RequestError, StoreRefused
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.fold import apply
from everstep.domain.ids import Epoch, Instant, Millis, StepPath, TaskId
from everstep.domain.issues import issues_of
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import LISTED_MAX, Sweep, TaskState, row_of, unfinished
from everstep.engine.kit import Kit
from everstep.ports.store import Commit, Committed, Dead

PAGE = 100
SUSPECT = 3
"""From this many counted recoveries on a task is resumed alone: it may be what kills its worker."""


async def scan(kit: Kit, before: Instant) -> int:
    """Move every task of a dead worker; returns how many. Re-enterable: a second scan finds nothing.

    What somebody else writes at the moment is found again if need be; a task whose move is refused without a reason is
    passed over, loudly, so that it delays no other.
    """
    moved = 0
    stuck: set[TaskId] = set()
    while True:
        found = await kit.store.find_dead(kit.worker, before, PAGE + len(stuck))
        dead = [one for one in found if one.task not in stuck]
        if not dead:
            return moved
        kit.fault("scan.page.before")
        for one, result in zip(dead, await _sweep_page(dead, kit), strict=True):
            if result is None:
                stuck.add(one.task)
            else:
                moved += 1
                kit.feed.publish(result.events)
        for worker in sorted({one.worker.id for one in dead if one.worker is not None}):
            kit.feed.tell_all("worker", id=worker, status="dead")
        kit.fault("scan.page.after")


async def _sweep_page(dead: Sequence[Dead], kit: Kit) -> Sequence[Committed | None]:
    """What is read after the look may be another holder's by now: only what the dead one still holds is moved."""
    states = await _states(dead, kit)
    pairs = [
        (one, state)
        for one, state in zip(dead, states, strict=True)
        if state is not None and (state.epoch, state.status in HELD) == (one.epoch, True)
    ]
    blamed = _blamed(pairs)
    sweeps = [_sweep(one, state, kit, counts=_counts(one, state, blamed)) for one, state in pairs]
    moved: dict[TaskId, Committed] = {}
    for sweep, (_, state), result in zip(sweeps, pairs, await _swept(sweeps, kit), strict=True):
        if isinstance(result, Committed):
            moved[sweep.task] = result
            kit.figures.settled(state, sweep.drafts)
            state.seq = result.last_seq
            kit.see(state)
        elif result is not None and (result.epoch, result.last_seq) == (sweep.epoch, sweep.last_seq):
            # nobody came between, and yet
            kit.sink.note("a dead worker's task cannot be recovered", level="error", task=sweep.task)
    return [moved.get(one.task) for one in dead]


async def _states(dead: Sequence[Dead], kit: Kit) -> Sequence[TaskState | None]:
    """One that cannot be read stands still by itself, and delays no other."""
    try:
        return await kit.store.load_tasks([one.task for one in dead])
    except StoreRefused:
        return [await _readable(one.task, kit) for one in dead]


async def _readable(task: TaskId, kit: Kit) -> TaskState | None:
    try:
        return (await kit.store.load_tasks((task,)))[0]
    except StoreRefused as error:
        kit.sink.trouble("a dead worker's task cannot be read", error, task=task)
        return None


async def _swept(sweeps: Sequence[Sweep], kit: Kit) -> Sequence[Commit | None]:
    """The same of one whose move cannot be written."""
    try:
        return await kit.store.sweep(sweeps)
    except RequestError:
        return [await _writable(sweep, kit) for sweep in sweeps]


async def _writable(sweep: Sweep, kit: Kit) -> Commit | None:
    try:
        return (await kit.store.sweep((sweep,)))[0]
    except RequestError as error:
        kit.sink.trouble("a dead worker's task cannot be moved", error, task=sweep.task)
        return None


def _blamed(pairs: Sequence[tuple[Dead, TaskState]]) -> dict[str, StepPath | str]:
    """Of the suspects of one worker, only the one resumed last counts its death."""
    last: dict[str, tuple[Instant, str]] = {}
    for dead, state in pairs:
        if state.recoveries >= SUSPECT and dead.worker is not None:
            mine = (state.claimed_at or Instant(0), state.id)
            last[dead.worker.id] = max(last.get(dead.worker.id, mine), mine)
    return {worker: task for worker, (_, task) in last.items()}


def _counts(dead: Dead, state: TaskState, blamed: dict[str, StepPath | str]) -> bool:
    """Whether this death counts against the task: waiting is not dying, and a planned stop is nobody's fault."""
    worker = dead.worker
    if worker is not None and worker.released:
        return False
    beaten = worker is not None and state.claimed_at is not None and worker.heartbeat_at > state.claimed_at
    if not state.in_flight and beaten:
        return False
    if state.recoveries >= SUSPECT and worker is not None:
        return blamed.get(worker.id) == state.id
    return bool(state.in_flight) or not beaten


def _sweep(dead: Dead, state: TaskState, kit: Kit, *, counts: bool) -> Sweep:
    released = dead.worker is not None and dead.worker.released
    recovered = e.TaskRecovered(
        from_status=state.status,
        reason="released" if released else "worker_dead",
        worker=state.worker,
        epoch=Epoch(dead.epoch + 1),
        last_heartbeat_at=dead.worker.heartbeat_at if dead.worker else None,
        threshold_s=kit.limits.stale_after_ms / 1000,
        recoveries=state.recoveries + counts,
        steps=tuple(_expected(state, path) for path in state.in_flight[:LISTED_MAX]),
    )
    return _moved(state, recovered, kit)


def _moved(state: TaskState, recovered: e.TaskRecovered, kit: Kit) -> Sweep:
    """The guarded move to `stalled`, and what follows from it at once."""
    at = kit.clock.now()
    status, epoch, worker, last_seq = state.status, state.epoch, state.worker, state.seq
    drafts: list[e.Draft] = []
    _say(state, drafts, e.Draft(body=recovered), at)
    if state.recoveries > kit.limits.max_recoveries and state.status is not TaskStatus.CANCELLING:
        _exhausted(state, drafts, at, kit)
    elif state.handover is not None and state.handover.unannounced and state.status is not TaskStatus.CANCELLING:
        _nobody_asks(state, drafts, at, kit)
    elif status is TaskStatus.PAUSING and not state.in_flight and state.held_back:
        oldest = next(pause for pause in state.pauses.values() if pause.step is None)
        _say(state, drafts, e.Draft(body=e.TaskPaused(pause=oldest.id, reason_type=oldest.type)), at)
    return Sweep(
        task=state.id,
        status=status,
        epoch=epoch,
        worker=worker,
        at=at,
        drafts=tuple(drafts),
        row=row_of(state),
        last_seq=last_seq,
    )


async def take_from(state: TaskState, kit: Kit) -> bool:
    """Move a task whose holder is known to be gone; false if somebody wrote in between."""
    dead = Dead(task=state.id, status=state.status, epoch=state.epoch, worker=None)
    (result,) = await kit.store.sweep((_sweep(dead, state, kit, counts=bool(state.in_flight)),))
    if isinstance(result, Committed):
        kit.feed.publish(result.events)
    return isinstance(result, Committed)


def missing_tools(state: TaskState, kit: Kit) -> list[str]:
    """Tools that the rest of the task needs and this engine does not have."""
    if state.plan.durable is not None and state.plan.name not in kit.scripts:
        return [f"the durable function '{state.plan.name}'"]
    if kit.catalog.has_all(kit.graph(state).tools):
        return []
    left = [
        state.specs[path]
        for path, step in state.steps.items()
        if not step.ended and path in state.specs and (step.attempts or not state.is_optional(path))
    ]
    needed = {spec.tool for spec in left} | {other.tool for spec in left for other in spec.fallback}
    return sorted(tool for tool in needed if tool is not None and kit.catalog.find(tool) is None)


async def hand_back(state: TaskState, kit: Kit, *, died: bool = False) -> bool:
    """A task this engine holds and cannot carry on: whoever can may claim it. False if somebody wrote in between.

    `died`: a defect of ours ended its walk, which counts like the death of a worker, so that it ends one day.
    """
    recovered = e.TaskRecovered(
        from_status=state.status,
        reason="walk_died" if died else "released",
        worker=state.worker,
        epoch=Epoch(state.epoch + 1),
        last_heartbeat_at=None,
        threshold_s=kit.limits.stale_after_ms / 1000,
        recoveries=state.recoveries + died,
        steps=tuple(_expected(state, path) for path in state.in_flight[:LISTED_MAX]),
    )
    (result,) = await kit.store.sweep((_moved(state, recovered, kit),))
    if isinstance(result, Committed):
        kit.feed.publish(result.events)
    return isinstance(result, Committed)


def _say(state: TaskState, drafts: list[e.Draft], draft: e.Draft, at: Instant) -> None:
    drafts.append(draft)
    apply(state, draft.body, draft.step, at)


def _expected(state: TaskState, path: StepPath) -> e.RecoveredStep:
    attempt = state.open[path]
    decision = expected_decision(attempt.effect, state.plan.on_uncertain(spec_of(state, path)))
    return e.RecoveredStep(step=path, attempt=attempt.number, effect=attempt.effect, decision=decision)


def _exhausted(state: TaskState, drafts: list[e.Draft], at: Instant, kit: Kit) -> None:
    failure = Failure(
        code="recovery_exhausted",
        category=Category.INTERNAL,
        message=f"its worker or its walk died {state.recoveries} times without one recorded outcome",
        what_to_do="look at the step it was in; it probably kills its worker",
        effect_state=EffectState.UNKNOWN,
    )
    error = e.ErrorRecord(id=kit.entropy.new_id("e"), failure=failure, task_continues=False)
    _give_up_calls(state, drafts, at, error)
    body = e.TaskFailed(
        error=error,
        skipped=unfinished(state),
        duration_s=(at - state.created_at) / 1000,
        work_s=state.work_ms / 1000,
    )
    _say(state, drafts, e.Draft(body=body), at)


def _nobody_asks(state: TaskState, drafts: list[e.Draft], at: Instant, kit: Kit) -> None:
    """The request that this task answered died with its process: it ends, and nothing is called again."""
    error = e.ErrorRecord(id=kit.entropy.new_id("e"), failure=WORKER_LOST, task_continues=False)
    _give_up_calls(state, drafts, at, error)
    for pause in list(state.pauses.values()):
        _say(state, drafts, e.Draft(body=e.PauseWithdrawn(pause=pause.id, why="nobody asks"), step=pause.step), at)
    issues = tuple(issues_of(state))
    _say(
        state,
        drafts,
        e.Draft(body=e.TaskCancelled(reason="request_gone", skipped=unfinished(state), issues=issues)),
        at,
    )


def _give_up_calls(state: TaskState, drafts: list[e.Draft], at: Instant, error: e.ErrorRecord) -> None:
    for path in state.in_flight:
        given_up = e.AttemptAbandoned(
            attempt=state.open[path].number,
            error=error,
            effect_state=EffectState.UNKNOWN,
            called=True,
            duration_s=(at - state.open[path].started_at) / 1000,
        )
        _say(state, drafts, e.Draft(body=given_up, step=path), at)


def stale_before(kit: Kit) -> Instant:
    """Beats older than this are a dead worker's."""
    return Instant(kit.clock.now() - Millis(kit.limits.stale_after_ms))
