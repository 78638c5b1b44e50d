"""What a held task does for the tasks that its steps have made: let them be carried, stand still and end with it."""

from collections.abc import Sequence

from everstep.domain.states import TaskStatus
from everstep.engine.child import cancel_children, child_ends, pass_on_pause
from everstep.engine.commit import HeldTask
from everstep.engine.judge import Ended, judge
from everstep.engine.kit import Kit


async def tend(held: HeldTask, kit: Kit) -> Sequence[Ended]:
    """Tasks that steps wait for: those that have ended; the others are carried too, or cancelled with their parent."""
    state = held.state
    if state.status is TaskStatus.CANCELLING:
        await cancel_children(state, kit)
    else:
        await pass_on_pause(state, kit)
    for child in state.children.values():
        kit.carry(child)
    return [judge(state, path, outcome, kit) for path, outcome in await child_ends(state, kit)]


async def born(held: HeldTask, kit: Kit) -> None:
    """Tasks that our steps made are durable: let them be carried, unless we are being paused."""
    if held.state.held_back:
        await pass_on_pause(held.state, kit)
    waited_for = held.state.children.values()
    for child in held.newborn.values():
        if child.id in waited_for:
            kit.carry(child.id)
    held.newborn.clear()
