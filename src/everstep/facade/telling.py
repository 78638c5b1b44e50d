"""A task with all that its journal tells: for operations that need more than its state."""

from everstep.domain.attempts import history_of
from everstep.domain.errors import Conflict
from everstep.domain.events import Recorded, TaskCreated, TaskUpdated, Who
from everstep.domain.ids import Instant, Seq, TaskId
from everstep.domain.task import TaskState
from everstep.domain.undo import Outlook
from everstep.domain.wishes import Fork, Undo
from everstep.engine.control import load
from everstep.engine.kit import Kit
from everstep.engine.undoable import Told
from everstep.wire.event import decode, encode, loads

EVENTS_PAGE = 500


async def told_of(task: TaskId, who: Who, kit: Kit) -> Told:
    """The state, and the history up to it; the first event is all in the state."""
    state = await load(task, who, kit)
    events: list[Recorded] = []
    while len(events) < state.seq - 1:
        page = await kit.store.read_events(task, Seq(1 + len(events)), EVENTS_PAGE)
        events += [decode(one.encoded) for one in page if one.seq <= state.seq]
    return Told(state=state, history=history_of(events))


async def require_same(task: TaskId, asked: TaskCreated, kit: Kit, *, titled: bool) -> None:
    """A key means one wish: whoever says something else with it is refused. Plan and inputs are the same already."""
    (first,) = await kit.store.read_events(task, Seq(0), 1)
    now = Recorded(task=task, seq=Seq(1), at=Instant(0), generation=1, actor=kit.actor, step=None, body=asked)
    known, said = (loads(encoded)["data"] for encoded in (first.encoded, encode(now)))
    derived = {"plan", "inputs", "workspace", *(() if titled else ("title",))}
    if any(known.get(name) != value for name, value in said.items() if name not in derived):
        raise other_words(task)


async def require_same_fork(task: TaskId, asked: TaskCreated, wish: Fork, kit: Kit) -> None:
    """The same for a fork: of the same task, from the same step, with the same arguments. The rest is inherited."""
    first, *more = [decode(one.encoded).body for one in await kit.store.read_events(task, Seq(0), 2)]
    assert isinstance(first, TaskCreated)
    given = next((body.changes.get("arguments") for body in more if isinstance(body, TaskUpdated)), None)
    titled = wish.title is not None and wish.title != first.title
    if first.parent != asked.parent or titled or (given or {}) != {**wish.arguments}:
        raise other_words(task)


def same_undo(made: TaskState, undone: TaskState, wish: Undo, now: Outlook) -> bool:
    """Whether a task takes back what is asked for: the named steps, or all, so that nothing is left to take back."""
    taken = {path for path, step in undone.steps.items() if step.undone_by and step.undone_by[0] == made.id}
    return {*wish.steps} == taken if wish.steps is not None else not now.steps


def other_words(task: TaskId) -> Conflict:
    """The refusal of a key that stands for another wish."""
    return Conflict(
        "the key belongs to a task that was asked for in other words",
        code="idempotency_conflict",
        what_to_do="use another key",
        details={"task": task},
    )
