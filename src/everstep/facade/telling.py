"""A task with all that its journal tells: for operations that need more than its state."""

from everstep.domain.attempts import history_of
from everstep.domain.events import Recorded, Who
from everstep.domain.ids import Seq, TaskId
from everstep.engine.control import load
from everstep.engine.kit import Kit
from everstep.engine.undoable import Told
from everstep.wire.event import decode

EVENTS_PAGE = 500


async def told_of(task: TaskId, who: Who, kit: Kit) -> Told:
    """The state, and the history up to it; the first event is all in the state."""
    state = await load(task, who, kit)
    events: list[Recorded] = []
    while len(events) < state.seq - 1:
        page = await kit.store.read_events(task, Seq(1 + len(events)), EVENTS_PAGE)
        events += [decode(one.encoded) for one in page if one.seq <= state.seq]
    return Told(state=state, history=history_of(events))
