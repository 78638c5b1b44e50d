"""A task that a driver outside carries: turn by turn, each in whatever process is asked, all from what is durable.

    begin -> call, call, … -> look -> …            (the laps of `walk`, taken apart)

A turn is what one lap of a walk is: what has ended is judged, `settle` writes it down with what follows, and every call
that is open is named. Nothing is remembered between turns; two of one task may meet, and the store lets one through.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from everstep.domain.errors import LeaseLost, StoreError, Unavailable
from everstep.domain.events import Who
from everstep.domain.ids import ELSEWHERE, Millis, StepPath, TaskId, WorkerId
from everstep.domain.states import CLAIMABLE
from everstep.domain.task import Intent, Lease, TaskState
from everstep.engine import control
from everstep.engine.call_apart import Calls
from everstep.engine.commit import CANNOT_BE_WRITTEN, HeldTask, break_off, is_held
from everstep.engine.kit import Kit
from everstep.engine.lap_apart import Part, end, find_open, looked, settle_all, taken
from everstep.engine.stall import missing_tools, take_from
from everstep.engine.turn import turn_of
from everstep.ports.driver import Turn
from everstep.ports.store import Claim

LET_GO: Final = Turn(lease=None)
AT_ONCE: Final = Turn(lease=None, look_in_ms=Millis(0))
LATER: Final = Turn(lease=None, look_in_ms=Millis(10_000))
OVER: Final = Turn(lease=None, over=True)


class Apart:
    """Answers a driver's questions. `tell`: have the driver look at another task, and be sure of it."""

    def __init__(self, kit: Kit, tell: Callable[[TaskId], Awaitable[None]]) -> None:
        self._kit = kit
        self._tell = tell
        self.calls = Calls(kit)

    def trouble(self, what: str, error: Exception) -> None:
        """Into the log."""
        self._kit.sink.trouble(what, error)

    async def begin(self, task: TaskId, holder: WorkerId) -> Turn:
        """Take it for this holder. A driver has one holder of a task at a time, so another one of its own is gone."""
        kit = self._kit
        state = await self._load(task)
        if state is None or state.terminal:
            return await self._over(state)
        if state.worker == holder:
            return await self.look(Lease(task=task, epoch=state.epoch, worker=holder))
        if state.worker is not None and not (state.worker.startswith(ELSEWHERE) and await take_from(state, kit)):
            return LET_GO  # a door makes a call with it for a client, and will say so
        claim = Claim(worker=holder, at=kit.clock.now(), limit=1, only=frozenset({task}), suspects=1)
        claimed = () if kit.passage.closed else await kit.store.claim_tasks(claim)
        if not claimed:
            return LATER if kit.passage.closed else await self._gone(task)
        kit.feed.publish(claimed[0].events)
        held = await self._find(claimed[0].lease)
        if held is None:
            return await self._gone(task)
        kit.figures.claimed(held.state)
        return await self._turn(held, taken)

    async def look(self, lease: Lease) -> Turn:
        """Everything anew, as a walk that was told something."""
        held = await self._find(lease)
        return await self._gone(lease.task) if held is None else await self._turn(held, looked)

    async def call(self, lease: Lease, step: StepPath, attempt: int) -> Turn | None:
        """The one call of an attempt; what comes of it counts only while that attempt is open."""
        held = await self._find(lease)
        if held is None:
            return await self._gone(lease.task)
        found = await find_open(held, step, attempt, kit=self._kit)
        if found is None:
            return await self._turn(held, looked)
        made = await self.calls.make(held.state, Intent(lease.task, step, found))
        if made == "before":
            self._kit.sink.note("asked again for a call that has begun", task=lease.task, step=step)
            return None
        return await self._gone(lease.task) if made == "gone" else await self._turn(held, end(step, attempt, made))

    async def give_up(self, lease: Lease, step: StepPath, attempt: int) -> Turn:
        """The outcome `Lost`, with what its tool sees of it where that can look; or it was never begun."""
        held = await self._find(lease)
        if held is None:
            return await self._gone(lease.task)
        if await find_open(held, step, attempt, kit=self._kit) is None:
            return await self._turn(held, looked)
        return await self._turn(held, end(step, attempt, await self.calls.forgo(lease, held.state, step, attempt)))

    async def cancel(self, task: TaskId) -> None:
        """As anybody may, in the name of the engine."""
        state = await self._load(task)
        if state is not None and not state.terminal:
            who = Who(owner=state.owner, actor=self._kit.actor)
            await control.cancel(task, who, "cancelled where it is carried", self._kit)

    # A task as it stands

    async def _load(self, task: TaskId) -> TaskState | None:
        (state,) = await self._kit.store.load_tasks((task,))
        if state is not None and not state.terminal:
            missing = missing_tools(state, self._kit)
            if missing:  # whoever asked may ask another worker
                why = f"this worker lacks {', '.join(missing)}"
                raise Unavailable(why, what_to_do="give all workers of a queue the same tools")
        return state

    async def _find(self, lease: Lease) -> HeldTask | None:
        """None if this lease is over."""
        state = await self._load(lease.task)
        return HeldTask(lease, state) if is_held(state, lease) else None

    async def _gone(self, task: TaskId) -> Turn:
        """Nobody holds it, or somebody else does. What it was let go for may have come by now."""
        state = await self._load(task)
        if state is None or state.terminal:
            return await self._over(state)
        return AT_ONCE if state.worker is None and state.status in CLAIMABLE else LET_GO

    async def _over(self, state: TaskState | None) -> Turn:
        """A parent hears of it before the driver does: whoever dies in between is asked again."""
        if state is not None and state.parent is not None and state.parent.link == "child_of":
            await self._tell(state.parent.task)
        return OVER

    # One turn

    async def _turn(self, held: HeldTask, part: Part) -> Turn:
        """What `part` says has ended, and all that follows at once."""
        kit, at = self._kit, self._kit.clock.now()
        try:
            await settle_all(held, part, kit)
        except LeaseLost:
            kit.sink.note("lease lost", task=held.lease.task)
            return await self._gone(held.lease.task)
        except StoreError:
            raise
        except CANNOT_BE_WRITTEN as error:
            kit.sink.trouble("a task is broken off", error, task=held.lease.task)
            await break_off(held, str(error), kit)
        kit.stir()
        return await self._over(held.state) if held.state.terminal else turn_of(held, kit, at)
