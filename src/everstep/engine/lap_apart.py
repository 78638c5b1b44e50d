"""What a turn begins with: what has ended since the last one, or was left by the holder before; and all that follows.

An end is bound to its attempt (`Ended.attempt`): when it is written, another attempt of the same step may be open.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from everstep.domain.ids import StepPath
from everstep.domain.outcome import Outcome, Spawns
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import OpenAttempt
from everstep.engine.child import cancel_children, child_ends, heed_parent, prepare
from everstep.engine.commit import HeldTask, fetch, reload, settle
from everstep.engine.judge import Ended, judge
from everstep.engine.kit import Kit
from everstep.engine.lost import lost_calls
from everstep.engine.rehearse import begin_code, end_code, hear, looked_at_code
from everstep.engine.signal import Ears
from everstep.engine.tend import born, tend

Part: TypeAlias = Callable[[HeldTask, Kit], Awaitable[Sequence[Ended]]]


async def settle_all(held: HeldTask, part: Part, kit: Kit) -> None:
    """Lap by lap until everything waits for a call, a time or somebody."""
    woken = asyncio.Event()
    try:
        if held.state.plan.durable is not None:
            await begin_code(held, kit, woken.set)
        await _settle_all(held, await part(held, kit), woken, kit)
    finally:
        end_code(held)


async def _settle_all(held: HeldTask, ended: Sequence[Ended], woken: asyncio.Event, kit: Kit) -> None:
    ears = Ears(kit)
    while True:
        await settle(held, ended, None, kit)
        ended = ()
        if held.newborn:
            await born(held, kit)
        if held.state.listening and await ears.listen(held.state):
            await reload(held, kit)
            continue
        if held.code is None or await hear(held, kit) or held.state.status not in HELD:
            return
        if not held.code.fresh_and_quiet:
            await woken.wait()
            woken.clear()
        looked_at_code(held)


async def taken(held: HeldTask, kit: Kit) -> Sequence[Ended]:
    """As a walk begins: what the holder before has left."""
    if held.state.parent is not None:
        await heed_parent(held.state, kit)
        await reload(held, kit)
    ended = await lost_calls(held, kit)
    return [*ended, *await tend(held, kit)] if held.state.children else ended


async def looked(held: HeldTask, kit: Kit) -> Sequence[Ended]:
    """Tasks that steps wait for may have ended. Whoever took the task may have died before its first lap."""
    state = held.state
    if any(state.open[path].epoch < state.epoch for path in state.in_flight):
        return await taken(held, kit)
    if state.children and state.status is TaskStatus.CANCELLING:
        await cancel_children(state, kit)
    if not state.children:
        return ()
    return [_bound(held, path, outcome, kit=kit) for path, outcome in await child_ends(state, kit)]


def end(step: StepPath, attempt: int, outcome: Outcome) -> Part:
    """The end of a call; of one that is open no longer nothing: somebody else has said what became of it."""

    async def ended(held: HeldTask, kit: Kit) -> Sequence[Ended]:
        await reload(held, kit)
        if await find_open(held, step, attempt, kit=kit) is None:
            return await looked(held, kit)
        known = await prepare(held, step, outcome, kit) if isinstance(outcome, Spawns) else outcome
        return [_bound(held, step, known, kit=kit)]

    return ended


async def find_open(held: HeldTask, step: StepPath, attempt: int, *, kit: Kit) -> OpenAttempt | None:
    """This attempt with its arguments, if it is of this lease and has no end yet."""
    found = held.state.open.get(step)
    if found is None or found.number != attempt or found.epoch != held.lease.epoch or step not in held.state.in_flight:
        return None
    if not found.input.present:
        await fetch(held, [found.input.digest], kit)
    return held.state.open.get(step)


def _bound(held: HeldTask, step: StepPath, outcome: Outcome, *, kit: Kit) -> Ended:
    return replace(judge(held.state, step, outcome, kit), attempt=held.state.open[step].number)
