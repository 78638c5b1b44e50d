"""Everything stands still: no claim, no intent, over restarts too; then everything goes on. So does a restored copy.

The fact is kept by the store, which refuses intents and claims in the same transaction; what this engine knows of it
only spares it the asking.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.events import Who
from everstep.domain.ids import Instant
from everstep.domain.pausing import MODES
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.engine import control
from everstep.engine.feed import Notice
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.ports.store import TaskFilter
from everstep.ports.traffic import Halt

PAGE: Final = 200
SYSTEM: Final = "system"
UNFINISHED: Final = frozenset(TaskStatus) - TERMINAL - {TaskStatus.CANCELLING}


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


async def hold_back(kit: Kit) -> int:
    """At the start, if this store is a copy: pause what it holds unfinished; how many tasks.

    What was done after the copy is not known to it, so nothing goes on by itself. Killed in between, the next engine
    goes on with it: asking for a pause twice is asking once.
    """
    housekeeping = kit.passage.traffic.housekeeping
    copied_at = await housekeeping.copied_at()
    if copied_at is None:
        return 0
    note = f"restored from a copy of {_told(copied_at)}: what was done after it is not known here; look, then resume"
    paused, which = 0, TaskFilter(statuses=UNFINISHED, limit=PAGE)
    while True:
        page = await kit.store.list_tasks(which)
        for item in page.items:
            await control.pause(item.id, Who(owner=item.owner, actor=kit.actor), note, kit, by=SYSTEM)
        paused += len(page.items)
        if page.next_cursor is None:
            break
        which = replace(which, cursor=page.next_cursor)
    await housekeeping.forget_copy()
    kit.sink.note("this store is a copy: its unfinished tasks are paused", level="warning", tasks=paused)
    return paused


def _told(at: Instant) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(sep=" ", timespec="seconds")
