"""Everything stands still: no claim, no intent, over restarts too; then everything goes on.

The fact is kept by the store, which refuses intents and claims in the same transaction; what this engine knows of it
only spares it the asking.
"""

from everstep.domain.commands import MODES
from everstep.domain.errors import Validation
from everstep.domain.events import Who
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.ports.traffic import Halt


async def learn(kit: Kit) -> None:
    """At the start: whether everything was halted before."""
    kit.halted = await kit.traffic.get_halt()


async def halt(mode: str, who: Who, note: str | None, kit: Kit, loop: Loop) -> Halt:
    """Graceful: calls in flight may end. Immediate: they are ended, and judged by the effect rule."""
    if mode not in MODES:
        raise Validation(f"'mode' must be one of {', '.join(MODES)}")
    before = kit.halted
    if before is not None and before.mode == mode:
        return before
    kit.halted = wanted = Halt(mode=mode, by=who.actor.id, at=kit.clock.now(), note=note)
    try:
        await kit.traffic.set_halt(wanted)
    except BaseException:
        kit.halted = before
        raise
    loop.look_again()
    return wanted


async def go_on(kit: Kit, loop: Loop) -> None:
    """Lift it: what was being carried is taken up, what waits is claimed."""
    await kit.traffic.set_halt(None)
    kit.halted = None
    loop.look_again()
