"""Calls that nobody saw end: each becomes the outcome `Lost`, which is decided and committed like any other."""

from collections.abc import Sequence
from dataclasses import replace

from everstep.domain.ended import Ended
from everstep.domain.failure import EffectState
from everstep.domain.ids import StepPath
from everstep.domain.outcome import Lost, Outcome
from everstep.domain.task import OpenAttempt, TaskState
from everstep.engine.commit import HeldTask, fetch
from everstep.engine.invoke import look
from everstep.engine.judge import judge
from everstep.engine.kit import Kit
from everstep.ports.tool import Call


async def lost_calls(held: HeldTask, kit: Kit) -> Sequence[Ended]:
    """Calls of an earlier epoch that nobody saw end; a tool that can look does so now."""
    state = held.state
    absent = {state.open[path].input.digest for path in state.in_flight if not state.open[path].input.present}
    if absent:
        await fetch(held, absent, kit)
        state = held.state
    ends = []
    for path in state.in_flight:
        attempt = state.open[path]
        assert attempt.epoch < state.epoch
        call = await _call(attempt, kit)
        kit.fault("recover.probe.before")
        ends.append(judge(state, path, Lost(probe=await look(call, EffectState.UNKNOWN, kit)), kit))
        kit.fault("recover.probe.after")
    return ends


async def looked_at(state: TaskState, path: StepPath, outcome: Outcome, kit: Kit) -> Outcome:
    """A call that was cut off, with what its tool sees of it; any other end as it is."""
    attempt = state.open.get(path)
    if not isinstance(outcome, Lost) or attempt is None:
        return outcome
    return replace(outcome, probe=await look(await _call(attempt, kit), EffectState.UNKNOWN, kit))


async def _call(attempt: OpenAttempt, kit: Kit) -> Call:
    given = attempt.input
    # Long arguments are not in a state that was read again while the call was under way.
    arguments = kit.codec.fresh(given) if given.present else (await kit.store.get_payloads((given.digest,)))[0]
    assert isinstance(arguments, dict)
    return Call(tool=attempt.tool, arguments=arguments, effect=attempt.effect, idempotency_key=attempt.idempotency_key)
