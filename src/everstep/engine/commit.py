"""Decision and proposals into one guarded write. The only caller of `commit_steps`; no other room ends a step."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeGuard

from everstep.domain.decide import decide
from everstep.domain.errors import EverstepError, LeaseLost, LimitExceeded, StoreFull, Unavailable
from everstep.domain.events import (
    Actor,
    Draft,
    PauseOpened,
    PlanRevised,
    StepCompleted,
    StepStarted,
    StepWaiting,
    TaskCompleted,
    TaskContinued,
    TaskStarted,
)
from everstep.domain.fold import apply, apply_intent
from everstep.domain.ids import Digest, Epoch, Instant, Seq, StepPath, TaskId
from everstep.domain.states import CLAIMABLE, HELD
from everstep.domain.task import Intent, Lease, NewTask, StepCommit, TaskState, row_of
from everstep.domain.values import JsonValue, NotJson, Sealed
from everstep.engine.advance import advance, broken_off
from everstep.engine.judge import NEVER_CALLED, Ended, judge, shortened
from everstep.engine.kit import Kit
from everstep.engine.lap import Lap, Performance
from everstep.engine.patience import STORE_WAIT_MS, patiently
from everstep.ports.store import Committed

CANNOT_BE_WRITTEN: Final = (EverstepError, NotJson)
"""Something of a task cannot be written down, here or anywhere."""


class HeldTask:
    """A task this engine holds the lease of, and what it believes of it."""

    __slots__ = ("code", "lease", "newborn", "payloads", "state")

    def __init__(self, lease: Lease, state: TaskState) -> None:
        self.lease = lease
        self.state = state
        self.code: Performance | None = None
        """The durable function at work, if the task is one's."""
        self.payloads: dict[Digest, JsonValue] = {}
        """Values that live in artifacts and were needed here."""
        self.newborn: dict[StepPath, NewTask] = {}
        """Tasks that steps of this one are about to make."""

    @property
    def over(self) -> bool:
        """Whether nobody needs to hold it any more."""
        return self.state.status not in HELD

    @property
    def claimable(self) -> bool:
        """Whether somebody may hold it."""
        return self.state.status in CLAIMABLE


async def settle(
    held: HeldTask, ended: Sequence[Ended], calls: Collection[StepPath] | None, kit: Kit
) -> Sequence[Intent]:
    """Outcomes in, next intents out: one commit. `calls`: those under way here; None: others may make them.

    A command came between, or the store was away for a while: look again. The outcomes are kept; an intent that
    turns out to be durable without a call of ours was never acted on.
    """
    intents: Sequence[Intent] = ()
    under_way = None if calls is None else tuple(calls)  # one that ends meanwhile has been made all the same
    while True:
        at = kit.clock.now()
        lap, drafts = _decide(held, ended, at, kit)
        if lap.needs:
            await fetch(held, lap.needs, kit)
            continue
        if lap.wishes or lap.slots:
            await patiently(partial(ask_for, held.lease.task, lap, kit), held.lease.task, kit)
            await reload(held, kit)
            continue
        if not drafts and not lap.proposals:
            return intents
        payloads = [*_payloads(drafts, lap), *_left(ended)]
        try:
            if payloads:
                await kit.store.put_payloads(payloads)
            (result,) = await kit.store.commit_steps((_unit(held, drafts, lap),))
        except (Unavailable, StoreFull) as trouble:
            kit.sink.trouble("the store does not take the commit", trouble, task=held.lease.task)
            kit.doubt(trouble.code)
            await _wait_for_store(held, kit)
            ended = ended if under_way is None else [*ended, *_never_called(held, ended, under_way, kit=kit)]
            intents = ()
            continue
        except LimitExceeded as refused:
            ended = await _in_fewer_words(held, ended, refused, kit)
            continue
        if isinstance(result, Committed):
            kit.feed.publish(result.events)
            kit.passage.used(lap.places)
            kit.figures.settled(held.state, drafts, result.intents)
            if held.state.pauses:
                _log_stops(held, drafts, kit)
            fresh = granted(held, result)
            if not result.breakers:
                return [*intents, *fresh] if intents else fresh
            intents = [*intents, *fresh]
            kit.breakers.learned(result.breakers, refused_at=at if result.refused else None)
            if not result.refused:
                return intents
            ended = ()  # a breaker has refused a call alone: see what becomes of its step
            continue
        if (result.epoch, result.worker) != (held.lease.epoch, held.lease.worker):
            raise LeaseLost(f"task {held.lease.task} is no longer ours")
        if result.last_seq == held.state.seq:  # nobody came between: another engine has halted everything
            await patiently(kit.passage.learn_halt, held.lease.task, kit)
        await reload(held, kit)


async def _in_fewer_words(held: HeldTask, ended: Sequence[Ended], refused: LimitExceeded, kit: Kit) -> Sequence[Ended]:
    """An end that is too long for its event; raises the refusal if it cannot be told shorter."""
    shorter = shortened(ended)
    if shorter is None:
        raise refused
    kit.sink.trouble("an end is told in fewer words", refused, task=held.lease.task)
    await reload(held, kit)
    return shorter


def _never_called(
    held: HeldTask, ended: Sequence[Ended], under_way: Collection[StepPath], *, kit: Kit
) -> Iterator[Ended]:
    """Intents that turn out to be durable, of whom nobody has heard."""
    settled = {*under_way, *(one.path for one in ended)}
    for path in held.state.in_flight:
        if path not in settled:
            yield judge(held.state, path, NEVER_CALLED, kit)


async def ask_for(task: TaskId, lap: Lap, kit: Kit) -> None:
    """What only the store can give: places in rates, slots of a fleet's pools. The next lap finds them."""
    if lap.wishes:
        await kit.passage.reserve(task, lap.wishes, lap.at)
    if lap.slots and kit.passage.shared is not None:
        await kit.passage.shared.take(task, lap.slots)


def _decide(held: HeldTask, ended: Sequence[Ended], at: Instant, kit: Kit) -> tuple[Lap, list[Draft]]:
    """What the ends mean, then what follows; both applied to the state we hold."""
    drafts: list[Draft] = []
    heard = [one.verdict for one in ended if one.verdict and held.state.steps[one.path].attempt is not None]
    for one in ended:
        for draft in decide(held.state, one, at):
            if held.state.pause_timeout_ms is not None:
                draft = kit.timed(draft, held.state, at)  # noqa: PLW2901 -- the same, with its time
            drafts.append(draft)
            apply(held.state, draft.body, draft.step, at)
    lap = advance(held.state, kit, at, held.code)
    if heard:
        lap.verdicts = tuple(heard)
    drafts.extend(lap.drafts)
    return lap, drafts


def _log_stops(held: HeldTask, drafts: Sequence[Draft], kit: Kit) -> None:
    """Every stop has a line in the operator's log."""
    for draft in drafts:
        if isinstance(draft.body, PauseOpened):
            pause = draft.body.pause
            kit.sink.note("a task waits", task=held.lease.task, step=draft.step, reason=pause.type.value, why=pause.why)


async def break_off(held: HeldTask, why: str, kit: Kit) -> None:
    """Something of this task cannot be written down, here or anywhere: it ends with what can."""
    while True:
        await reload(held, kit)
        lap = broken_off(held.state, kit, why)
        (result,) = await kit.store.commit_steps((_unit(held, lap.drafts, lap),))
        if isinstance(result, Committed):
            kit.feed.publish(result.events)
            granted(held, result)
            return


async def _wait_for_store(held: HeldTask, kit: Kit) -> None:
    """Until the state can be read again; the store itself reopens with a backoff of its own."""
    await kit.clock.sleep_until(Instant(kit.clock.now() + STORE_WAIT_MS))
    await reload(held, kit)


async def take_up(state: TaskState, drafts: Sequence[Draft], who: Actor, kit: Kit) -> tuple[HeldTask, Committed] | None:
    """Hold a task that nobody holds, by its first commit: these drafts, of which the first takes it, and what follows.

    None: somebody wrote in between, or something has to be fetched or waited for first: look again.
    """
    taken, at = drafts[0].body, kit.clock.now()
    assert isinstance(taken, TaskStarted)
    for draft in drafts:
        apply(state, draft.body, draft.step, at)
    state.seq = Seq(state.seq + 1)
    held = HeldTask(Lease(task=state.id, epoch=taken.epoch, worker=taken.worker), state)
    lap, more = _decide(held, (), at, kit)
    if lap.wishes or lap.slots:
        await ask_for(state.id, lap, kit)
    if lap.needs or lap.wishes or lap.slots:
        return None
    said = [*drafts[1:], *more]
    payloads = _payloads(said, lap)
    if taken.continued is not None:
        _add_payload(payloads, taken.continued.arguments)
    if payloads:
        await kit.store.put_payloads(payloads)
    (result,) = await kit.store.commit_steps((replace(_unit(held, said, lap), taken=taken, actor=who),))
    if not isinstance(result, Committed):
        return None
    kit.feed.publish(result.events)
    kit.passage.used(lap.places)
    _log_stops(held, said, kit)
    return held, result


def begin_here(state: TaskState, kit: Kit, at: Instant) -> tuple[HeldTask, StepCommit] | None:
    """The claim and first commit of a task that is being created; None if it has to be claimed like any other."""
    lease = Lease(task=state.id, epoch=Epoch(1), worker=kit.worker)
    started = TaskStarted(from_status=state.status, worker=lease.worker, epoch=lease.epoch)
    apply(state, started, None, at)
    state.seq = Seq(state.seq + 1)
    held = HeldTask(lease, state)
    lap, drafts = _decide(held, (), at, kit)
    if lap.needs or lap.wishes or lap.slots or lap.asks or not lap.proposals or _payloads(drafts, lap):
        return None
    return held, _unit(held, drafts, lap)


def granted(held: HeldTask, done: Committed) -> Sequence[Intent]:
    """What the store granted, applied to the state we hold."""
    for intent in done.intents:
        apply_intent(held.state, intent)
    held.state.seq = done.last_seq
    return done.intents


def _unit(held: HeldTask, drafts: list[Draft], lap: Lap) -> StepCommit:
    state = held.state
    return StepCommit(
        held.lease,
        state.seq,
        state.generation,
        lap.at,
        tuple(drafts),
        tuple(lap.proposals),
        row_of(state, lap.proposed),
        state.status not in HELD,
        _children(held, drafts) if held.newborn else (),
        lap.toll,
    )


def _children(held: HeldTask, drafts: Sequence[Draft]) -> tuple[NewTask, ...]:
    """Only what the commit says that a step waits for is made."""
    waited_for = {draft.step for draft in drafts if isinstance(draft.body, StepWaiting)}
    return tuple(child for path, child in held.newborn.items() if path in waited_for)


async def reload(held: HeldTask, kit: Kit) -> None:
    """Read the state again, once the store answers; what was applied but not committed is gone with the old one."""
    (state,) = await patiently(lambda: kit.store.load_tasks((held.lease.task,)), held.lease.task, kit)
    if not is_held(state, held.lease):
        raise LeaseLost(f"task {held.lease.task} is no longer ours")
    held.state = state
    for sealed in _references(state):
        if not sealed.present and sealed.digest in held.payloads:
            sealed.value = held.payloads[sealed.digest]
            sealed.present = True


def is_held(state: TaskState | None, lease: Lease) -> TypeGuard[TaskState]:
    """Whether a task that was just read is still this lease's to write."""
    return state is not None and (state.epoch, state.worker) == (lease.epoch, lease.worker)


async def fetch(held: HeldTask, digests: Collection[Digest], kit: Kit) -> None:
    """Bring values that live in artifacts into the state, which is read again: the lap that asked is void."""
    wanted = sorted(digests)
    found = await patiently(lambda: kit.store.get_payloads(wanted), held.lease.task, kit)
    held.payloads.update(zip(wanted, found, strict=True))
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
        if step.given is not None:
            yield step.given
        if step.asked is not None:
            yield step.asked
        if step.grant is not None and step.grant.items is not None:
            yield step.grant.items


_PAYLOAD_OF: Final = {
    StepCompleted: "output",
    StepStarted: "items",
    StepWaiting: "output",
    TaskCompleted: "outputs",
    TaskContinued: "output",
}


def _left(ended: Sequence[Ended]) -> Iterator[tuple[Digest, bytes]]:
    """What calls leave beside their output."""
    for one in ended:
        for left in getattr(one.outcome, "left", ()):
            yield left.artifact.digest, left.raw


def _payloads(drafts: Sequence[Draft], lap: Lap) -> list[tuple[Digest, bytes]]:
    """What must be kept by content before the commit that refers to it."""
    found: list[tuple[Digest, bytes]] = []
    for proposal in lap.proposals:
        _add_payload(found, proposal.input)
    for draft in drafts:
        name = _PAYLOAD_OF.get(type(draft.body))
        if name is not None:
            _add_payload(found, getattr(draft.body, name))
        elif isinstance(draft.body, PauseOpened) and draft.body.pause.call is not None:
            _add_payload(found, draft.body.pause.call.input)
        elif isinstance(draft.body, PlanRevised):
            for change in draft.body.diff:
                _add_payload(found, change.asked)
    return found


def _add_payload(found: list[tuple[Digest, bytes]], sealed: Sealed | None) -> None:
    if sealed is not None and sealed.by_reference and sealed.raw is not None:
        found.append((sealed.digest, sealed.raw))
