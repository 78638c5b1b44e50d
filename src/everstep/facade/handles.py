"""What clients outside call a task, one name per generation."""

from everstep.domain.ids import Millis
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.facade.desk import Desk
from everstep.ports.handles import Handle


async def handle_of(desk: Desk, state: TaskState, name: str, ttl_ms: int) -> Handle:
    """The handle of this generation: `name`, unless it has one."""
    wanted = Handle(
        id=name,
        owner=state.owner,
        task=state.id,
        generation=state.generation,
        ttl_ms=Millis(ttl_ms),
        created_at=desk.now,
        notes={},
    )
    return await desk.runtime.kit.store.handles.keep(wanted)


async def note(desk: Desk, handle: Handle, notes: JsonObject) -> Handle:
    """What the client said that is nobody else's business; null deletes."""
    handles = desk.runtime.kit.store.handles
    await handles.note(handle.id, notes)
    return await handles.find(handle.id) or handle


async def find_handle(desk: Desk, name: str, owner: str) -> Handle | None:
    """A handle of this owner; another's is not there."""
    found = await desk.runtime.kit.store.handles.find(name)
    return found if found is not None and found.owner == owner else None
