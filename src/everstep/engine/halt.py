"""Everything stands still: no claim, no intent, over restarts too; then everything goes on.

The fact is kept by the store, which refuses intents and claims in the same transaction; what this engine knows of it
only spares it the asking.
"""

from everstep.domain.errors import Validation
from everstep.domain.pausing import MODES
from everstep.engine.feed import Notice
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.ports.traffic import Halt


async def learn(kit: Kit) -> None:
    """At the start: whether everything was halted before."""
    kit.passage.halted = await kit.passage.traffic.get_halt()


async def halt(wanted: Halt, kit: Kit, loop: Loop) -> Halt:
    """Graceful: calls in flight may end. Immediate: they are ended, and judged by the effect rule."""
    if wanted.mode not in MODES:
        raise Validation(f"'mode' must be one of {', '.join(MODES)}")
    before = kit.passage.halted
    if before is not None and before.mode == wanted.mode:
        return before
    kit.passage.halted, kept = wanted, False
    try:
        await kit.passage.traffic.set_halt(wanted)
        kept = True
    finally:
        if not kept:
            kit.passage.halted = before
    loop.look_again()
    kit.feed.notice(Notice(topic="halt", data={"on": True, "mode": wanted.mode, "by": wanted.by, "note": wanted.note}))
    return wanted


async def go_on(kit: Kit, loop: Loop) -> None:
    """Lift it: what was being carried is taken up, what waits is claimed."""
    await kit.passage.traffic.set_halt(None)
    kit.passage.halted = None
    kit.passage.lifted_at = kit.clock.now()
    loop.look_again()
    kit.feed.notice(Notice(topic="halt", data={"on": False}))
