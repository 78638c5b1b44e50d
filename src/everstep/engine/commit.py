"""Decision and proposals into one guarded write. The only caller of `commit_steps`; no other room ends a step."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from everstep.domain.decide import NEVER_CALLED, Ended, decide
from everstep.domain.errors import LeaseLost, StoreFull, Unavailable
from everstep.domain.events import (
    Draft,
    StepCompleted,
    StepStarted,
    StepWaiting,
    TaskCompleted,
    TaskStarted,
)
from everstep.domain.fold import apply, apply_intent
from everstep.domain.ids import Digest, Epoch, Instant, Seq, StepPath
from everstep.domain.states import HELD
from everstep.domain.task import Intent, Lease, StepCommit, TaskState, row_of
from everstep.domain.values import JsonValue, Sealed
from everstep.engine.advance import advance
from everstep.engine.gate import reserve
from everstep.engine.kit import Kit
from everstep.engine.lap import Lap
from everstep.ports.store import Committed, Stale

STORE_WAIT_MS: Final = 500


class HeldTask:
    """A task this engine holds the lease of, and what it believes of it."""

    __slots__ = ("lease", "payloads", "state")

    def __init__(self, lease: Lease, state: TaskState) -> None:
        self.lease = lease
        self.state = state
        self.payloads: dict[Digest, JsonValue] = {}
        """Values that live in artifacts and were needed here."""


async def settle(held: HeldTask, ended: Sequence[Ended], calls: Collection[StepPath], kit: Kit) -> Sequence[Intent]:
    """Outcomes in, next intents out: one commit.

    A command came between, or the store was away for a while: look again. The outcomes are kept; an intent that
    turns out to be durable without a call of ours was never acted on.
    """
    while True:
        at = kit.clock.now()
        lap, drafts = _decide(held, ended, at, kit)
        if lap.needs:
            await fetch(held, lap.needs, kit)
            continue
        if lap.wishes:
            await reserve(held.lease.task, lap.wishes, at, kit)
            await reload(held, kit)
            continue
        if not drafts and not lap.proposals:
            return ()
        try:
            result = await _commit(held, drafts, lap, kit)
        except (Unavailable, StoreFull) as trouble:
            kit.sink.trouble("the store does not take the commit", trouble, task=held.lease.task)
            await _wait_for_store(held, kit)
            settled = {*calls, *(one.path for one in ended)}
            forgotten = [path for path in held.state.in_flight if path not in settled]
            ended = [*ended, *(Ended(path=path, outcome=NEVER_CALLED, retry=kit.limits.retry) for path in forgotten)]
            continue
        if isinstance(result, Committed):
            return granted(held, result, at)
        if (result.epoch, result.worker) != (held.lease.epoch, held.lease.worker):
            raise LeaseLost(f"task {held.lease.task} is no longer ours")
        await reload(held, kit)


def _decide(held: HeldTask, ended: Sequence[Ended], at: Instant, kit: Kit) -> tuple[Lap, list[Draft]]:
    """What the ends mean, then what follows; both applied to the state we hold."""
    drafts: list[Draft] = []
    for one in ended:
        for draft in decide(held.state, one, at):
            drafts.append(draft)
            apply(held.state, draft.body, draft.step, at)
    lap = advance(held.state, kit, at)
    drafts.extend(lap.drafts)
    return lap, drafts


async def _wait_for_store(held: HeldTask, kit: Kit) -> None:
    """Until the state can be read again; the store itself reopens with a backoff of its own."""
    while True:
        await kit.clock.sleep_until(Instant(kit.clock.now() + STORE_WAIT_MS))
        try:
            return await reload(held, kit)
        except (Unavailable, StoreFull):
            continue


def begin_here(state: TaskState, kit: Kit, at: Instant) -> tuple[HeldTask, StepCommit] | None:
    """The claim and first commit of a task that is being created; None if it has to be claimed like any other."""
    lease = Lease(task=state.id, epoch=Epoch(1), worker=kit.worker)
    started = TaskStarted(from_status=state.status, worker=lease.worker, epoch=lease.epoch)
    apply(state, started, None, at)
    state.seq = Seq(state.seq + 1)
    held = HeldTask(lease, state)
    lap, drafts = _decide(held, (), at, kit)
    if lap.needs or lap.wishes or _payloads(drafts, lap):
        return None
    return held, _unit(held, drafts, lap)


def granted(held: HeldTask, done: Committed, at: Instant) -> Sequence[Intent]:
    """What the store granted, applied to the state we hold."""
    for intent in done.intents:
        apply_intent(held.state, intent, held.lease.worker, at)
    held.state.seq = done.last_seq
    return done.intents


async def _commit(held: HeldTask, drafts: list[Draft], lap: Lap, kit: Kit) -> Committed | Stale:
    payloads = _payloads(drafts, lap)
    if payloads:
        await kit.store.put_payloads(payloads)
    (result,) = await kit.store.commit_steps((_unit(held, drafts, lap),))
    if isinstance(result, Committed):
        kit.feed.publish(result.events)
    return result


def _unit(held: HeldTask, drafts: list[Draft], lap: Lap) -> StepCommit:
    state = held.state
    return StepCommit(
        lease=held.lease,
        last_seq=state.seq,
        generation=state.generation,
        at=lap.at,
        drafts=tuple(drafts),
        proposals=tuple(lap.proposals),
        row=row_of(state, lap.proposed),
        release=state.status not in HELD,
    )


async def reload(held: HeldTask, kit: Kit) -> None:
    """Read the state again; what was applied but not committed is gone with the old one."""
    (state,) = await kit.store.load_tasks((held.lease.task,))
    if state is None or (state.epoch, state.worker) != (held.lease.epoch, held.lease.worker):
        raise LeaseLost(f"task {held.lease.task} is no longer ours")
    held.state = state
    for sealed in _references(state):
        if not sealed.present and sealed.digest in held.payloads:
            sealed.value = held.payloads[sealed.digest]
            sealed.present = True


async def fetch(held: HeldTask, digests: Collection[Digest], kit: Kit) -> None:
    """Bring values that live in artifacts into the state, which is read again: the lap that asked is void."""
    wanted = sorted(digests)
    held.payloads.update(zip(wanted, await kit.store.get_payloads(wanted), strict=True))
    await reload(held, kit)


def _references(state: TaskState) -> Iterator[Sealed]:
    yield state.inputs
    for attempt in state.open.values():
        yield attempt.input
    for step in state.steps.values():
        if step.output is not None:
            yield step.output
        if step.items is not None:
            yield step.items


_PAYLOAD_OF: Final = {
    StepCompleted: "output",
    StepStarted: "items",
    StepWaiting: "output",
    TaskCompleted: "outputs",
}


def _payloads(drafts: Sequence[Draft], lap: Lap) -> list[tuple[Digest, bytes]]:
    """What must be kept by content before the commit that refers to it."""
    sealed: list[Sealed] = [proposal.input for proposal in lap.proposals]
    for draft in drafts:
        name = _PAYLOAD_OF.get(type(draft.body))
        value = getattr(draft.body, name) if name is not None else None
        if value is not None:
            sealed.append(value)
    return [(one.digest, one.raw) for one in sealed if one.by_reference and one.raw is not None]
