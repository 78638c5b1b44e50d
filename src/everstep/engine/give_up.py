"""A task that this engine holds and cannot walk on with: it is handed back, so that it stands still for nobody."""

from everstep.domain.errors import StoreError
from everstep.domain.ids import Instant
from everstep.domain.task import Lease
from everstep.engine.commit import STORE_WAIT_MS, is_held
from everstep.engine.kit import Kit
from everstep.engine.recover import hand_back


async def give_up(lease: Lease, kit: Kit) -> None:
    """Hand back a task that is still ours, as soon as the store lets us."""
    back = False
    while not back and not kit.closing:
        await kit.clock.sleep_until(Instant(kit.clock.now() + STORE_WAIT_MS))
        try:
            (state,) = await kit.store.load_tasks((lease.task,))
            back = not is_held(state, lease) or state.terminal or await hand_back(state, kit)
        except StoreError as error:
            kit.sink.trouble("a task cannot be handed back", error, task=lease.task)
