"""A task leaves its holder: the guarded move to `stalled`, and what follows from it at once.

Whoever claims it later turns each interrupted call into the outcome `Lost`, which goes through `decide` and `commit`
like any other.
"""

from everstep.domain import events as e
from everstep.domain.consequence import interrupted
from everstep.domain.decide import WORKER_LOST
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.fold import apply
from everstep.domain.ids import Epoch, Instant
from everstep.domain.issues import issues_of
from everstep.domain.states import TaskStatus
from everstep.domain.task import Sweep, TaskState, row_of, unfinished
from everstep.engine.kit import Kit
from everstep.ports.store import Committed, Dead

SUSPECT = 3
"""From this many counted recoveries on a task is resumed alone: it may be what kills its worker."""


def sweep_of(dead: Dead, state: TaskState, kit: Kit, *, counts: bool) -> Sweep:
    """The move of a dead worker's task; `counts`: against it."""
    released = dead.worker is not None and dead.worker.released
    recovered = e.TaskRecovered(
        from_status=state.status,
        reason="released" if released else "worker_dead",
        worker=state.worker,
        epoch=Epoch(dead.epoch + 1),
        last_heartbeat_at=dead.worker.heartbeat_at if dead.worker else None,
        threshold_s=kit.limits.stale_after_ms / 1000,
        recoveries=state.recoveries + counts,
        steps=interrupted(state),
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
    (result,) = await kit.store.sweep((sweep_of(dead, state, kit, counts=bool(state.in_flight)),))
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
        steps=interrupted(state),
    )
    (result,) = await kit.store.sweep((_moved(state, recovered, kit),))
    if isinstance(result, Committed):
        kit.feed.publish(result.events)
    return isinstance(result, Committed)


def _say(state: TaskState, drafts: list[e.Draft], draft: e.Draft, at: Instant) -> None:
    drafts.append(draft)
    apply(state, draft.body, draft.step, at)


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
