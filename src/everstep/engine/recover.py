"""A dead worker's tasks: stalled -> effect rule -> front of the walk.

The scan moves them (`task.recovered`, guarded, one event per move; see `stall`), whoever can claims them.
"""

from collections.abc import Sequence

from everstep.domain.errors import RequestError, StoreRefused
from everstep.domain.ids import Instant, Millis, StepPath, TaskId
from everstep.domain.states import HELD
from everstep.domain.task import Sweep, TaskState
from everstep.engine.kit import Kit
from everstep.engine.stall import SUSPECT, sweep_of
from everstep.ports.store import Commit, Committed, Dead

PAGE = 100


async def scan(kit: Kit, before: Instant) -> int:
    """Move every task of a dead worker; returns how many. Re-enterable: a second scan finds nothing.

    What somebody else writes at the moment is found again if need be; a task whose move is refused without a reason is
    passed over, loudly, so that it delays no other.
    """
    moved = 0
    stuck: set[TaskId] = set()
    broken: set[TaskId] = set()
    while True:
        found = await kit.store.find_dead(kit.worker, before, PAGE + len(stuck))
        dead = [one for one in found if one.task not in stuck]
        if not dead:
            _tell(broken, kit)
            return moved
        kit.fault("scan.page.before")
        for one, result in zip(dead, await _sweep_page(dead, broken, kit), strict=True):
            if result is None:
                stuck.add(one.task)
            else:
                moved += 1
                kit.feed.publish(result.events)
        for worker in sorted({one.worker.id for one in dead if one.worker is not None}):
            kit.feed.tell_all("worker", id=worker, status="dead")
        kit.fault("scan.page.after")


async def _sweep_page(dead: Sequence[Dead], broken: set[TaskId], kit: Kit) -> Sequence[Committed | None]:
    """What is read after the look may be another holder's by now: only what the dead one still holds is moved."""
    states = await _states(dead, broken, kit)
    pairs = [
        (one, state)
        for one, state in zip(dead, states, strict=True)
        if state is not None and (state.epoch, state.status in HELD) == (one.epoch, True)
    ]
    blamed = _blamed(pairs)
    sweeps = [sweep_of(one, state, kit, counts=_counts(one, state, blamed)) for one, state in pairs]
    moved: dict[TaskId, Committed] = {}
    for sweep, (_, state), result in zip(sweeps, pairs, await _swept(sweeps, broken, kit), strict=True):
        if isinstance(result, Committed):
            moved[sweep.task] = result
            kit.figures.settled(state, sweep.drafts)
            state.seq = result.last_seq
            kit.see(state)
        elif result is not None and (result.epoch, result.last_seq) == (sweep.epoch, sweep.last_seq):
            # nobody came between, and yet
            kit.sink.note("a dead worker's task cannot be recovered", level="error", task=sweep.task)
    return [moved.get(one.task) for one in dead]


async def _states(dead: Sequence[Dead], broken: set[TaskId], kit: Kit) -> Sequence[TaskState | None]:
    """One that cannot be read stands still by itself, and delays no other."""
    try:
        return await kit.store.load_tasks([one.task for one in dead])
    except StoreRefused:
        return [await _readable(one.task, broken, kit) for one in dead]


async def _readable(task: TaskId, broken: set[TaskId], kit: Kit) -> TaskState | None:
    try:
        return (await kit.store.load_tasks((task,)))[0]
    except StoreRefused as error:
        _pass_over(task, "a dead worker's task cannot be read", error, broken=broken, kit=kit)
        return None


async def _swept(sweeps: Sequence[Sweep], broken: set[TaskId], kit: Kit) -> Sequence[Commit | None]:
    """The same of one whose move cannot be written."""
    try:
        return await kit.store.sweep(sweeps)
    except RequestError:
        return [await _writable(sweep, broken, kit) for sweep in sweeps]


async def _writable(sweep: Sweep, broken: set[TaskId], kit: Kit) -> Commit | None:
    try:
        return (await kit.store.sweep((sweep,)))[0]
    except RequestError as error:
        _pass_over(sweep.task, "a dead worker's task cannot be moved", error, broken=broken, kit=kit)
        return None


def _pass_over(task: TaskId, what: str, error: Exception, *, broken: set[TaskId], kit: Kit) -> None:
    """Every scan finds it again; the log tells of it once."""
    if task not in kit.broken:
        kit.sink.trouble(what, error, task=task)
    broken.add(task)


def _tell(broken: set[TaskId], kit: Kit) -> None:
    """Whoever asks how this engine is hears that tasks stand still; which ones is not everybody's business."""
    kit.broken = broken
    if broken:
        tasks = "an interrupted task stands" if len(broken) == 1 else f"{len(broken)} interrupted tasks stand"
        kit.unwell["recovery"] = f"{tasks} still, and cannot be taken up: `everstep db check` tells why"
    else:
        kit.unwell.pop("recovery", None)


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


def stale_before(kit: Kit) -> Instant:
    """Beats older than this are a dead worker's."""
    return Instant(kit.clock.now() - Millis(kit.limits.stale_after_ms))
