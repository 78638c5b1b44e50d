"""Calls that nobody saw end: each becomes the outcome `Lost`, which is decided and committed like any other."""

from collections.abc import Sequence

from everstep.domain.ended import Ended
from everstep.domain.failure import EffectState
from everstep.domain.outcome import Lost
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
        arguments = attempt.input.value
        assert isinstance(arguments, dict)
        call = Call(
            tool=attempt.tool,
            arguments=arguments,
            effect=attempt.effect,
            idempotency_key=attempt.idempotency_key,
        )
        kit.fault("recover.probe.before")
        ends.append(judge(state, path, Lost(probe=await look(call, EffectState.UNKNOWN, kit)), kit))
    return ends
