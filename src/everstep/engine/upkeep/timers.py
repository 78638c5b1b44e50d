"""Pauses that run out: warn, then do what was said would follow. Acts as `system`, through the way of every command.

Times stand in the store, so a restart forgets none. Nothing is polled: between two looks it sleeps until the next
pause is due, or until it hears of an earlier one.
"""

import asyncio
from collections.abc import Callable, Collection

from everstep.domain.approval import Names
from everstep.domain.commands import Drafts
from everstep.domain.errors import EverstepError
from everstep.domain.events import Draft, PauseExpiring, Who
from everstep.domain.expiry import due_after_warning, run_out
from everstep.domain.ids import Instant, PauseId, TaskId
from everstep.domain.task import TaskState
from everstep.engine.control import command
from everstep.engine.kit import Kit
from everstep.ports.store import KeptPause, PauseFilter

PAGE = 100
AFTER_TROUBLE_MS = 1000


class Timers:
    """One engine's eye on the pauses of the tasks it carries: of all, or only of its own."""

    def __init__(self, kit: Kit, own: Callable[[], Collection[TaskId] | None], nudge: Callable[[TaskId], None]) -> None:
        self._kit = kit
        self._own = own
        self._nudge = nudge
        self._next: Instant | None = None
        self._wake = asyncio.Event()
        kit.alarm = self.expect

    def expect(self, due: Instant) -> None:
        """Look again no later than that."""
        if self._next is None or due < self._next:
            self._next = due
            self._wake.set()

    def stop(self) -> None:
        """The engine closes."""
        self._wake.set()

    async def watch(self) -> None:
        """Until stopped."""
        while not self._kit.closing:
            self._wake.clear()
            self._next = None
            try:
                await self._look()
            except EverstepError as error:
                self._kit.sink.trouble("cannot look after pauses", error)
                self.expect(Instant(self._kit.clock.now() + AFTER_TROUBLE_MS))
            await self._wait()

    async def _wait(self) -> None:
        """Until the next pause is due; whoever expects an earlier one wakes us, and the time is taken anew."""
        while not self._kit.closing and (self._next is None or self._kit.clock.now() < self._next):
            self._wake.clear()
            waits: set[asyncio.Future[object]] = {asyncio.ensure_future(self._wake.wait())}
            if self._next is not None:
                waits.add(asyncio.ensure_future(self._kit.clock.sleep_until(self._next)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()

    async def _look(self) -> None:
        """Act on everything that is due; remember when the next one is."""
        found = await self._timed()
        for kept in found:
            assert kept.due_at is not None
            if kept.due_at > self._kit.clock.now():
                self.expect(kept.due_at)
                continue
            await self._act(kept)
        if self._next is None and len(found) >= PAGE:
            self.expect(self._kit.clock.now())

    async def _timed(self) -> list[KeptPause]:
        own = self._own()
        if own is None:
            return [*await self._kit.store.list_pauses(PauseFilter(timed=True, limit=PAGE))]
        found: list[KeptPause] = []
        for task in sorted(own):
            found += await self._kit.store.list_pauses(PauseFilter(task=task, timed=True, limit=PAGE))
        return found

    async def _act(self, kept: KeptPause) -> None:
        kit = self._kit
        names = Names(error=kit.entropy.new_id("e"), pause=PauseId(kit.entropy.new_id("p")))
        said: list[Draft] = []

        def decide(state: TaskState) -> tuple[Drafts, PauseId | None]:
            pause = state.pauses.get(kept.pause.id)
            drafts = () if pause is None else run_out(state, pause, kit.clock.now(), names)
            said[:] = drafts
            return drafts, kept.pause.id

        kit.fault("timer.expire.before")
        try:
            await command(kept.task, Who(owner=kept.owner, actor=kit.actor), kit, decide)
        except EverstepError as error:
            kit.sink.trouble("a pause could not run out", error, task=kept.task)
            return self.expect(Instant(kit.clock.now() + AFTER_TROUBLE_MS))
        kit.fault("timer.expire.after")
        if said and isinstance(said[0].body, PauseExpiring):
            due = due_after_warning(said[0].body)
            if due is not None:
                self.expect(due)
        elif said:
            self._nudge(kept.task)
        return None
