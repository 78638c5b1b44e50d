"""The loop of an engine whose tasks a driver outside carries: it turns what the store says into hints for the driver.

Recorded first, then told. Whatever is told may be told twice, by every engine on the store. What was not told is found
by looking: tasks that can be claimed here, commands for held ones by `upkeep/neighbours`.
"""

from typing import Final

from everstep.domain.errors import StoreError
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.domain.states import CLAIMABLE, HELD
from everstep.domain.task import TaskState
from everstep.engine.apart import Apart
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.ports.driver import Driver
from everstep.ports.store import TaskFilter

AGAIN_MS: Final = 30_000
"""After so long a task that can still be claimed is told of again."""
TROUBLE_MS: Final = 1_000
PAGE: Final = 200


class Elsewhere(Loop):
    """Who knows of tasks here, and has them carried there."""

    def __init__(self, kit: Kit, driver: Driver) -> None:
        super().__init__(kit)
        self._driver = driver
        self._apart = Apart(kit, driver.tell)
        self._asked: dict[TaskId, tuple[Seq, Instant]] = {}
        self._telling: set[TaskId] = set()
        self._everything = False

    def nudge(self, task: TaskId | None = None) -> None:
        """Have the driver look at this task; or look oneself for tasks that can be claimed."""
        if task in self._walks or task in self._dormant:  # a door makes a call with it for a client
            super().nudge(task)
            return
        if task is not None:
            self._telling.add(task)
        self._wake.call()

    def hear(self, task: TaskId) -> None:
        """What others say of a task is a hint as any."""
        self.nudge(task)

    def rouse(self, task: TaskId) -> bool:
        """It may wait for what has come."""
        self.nudge(task)
        return True

    def take(self, state: TaskState) -> None:
        """A task that was created here a moment ago."""
        self.nudge(state.id)

    def look_again(self) -> None:
        """Every task that is held is looked at."""
        self._everything = True
        self._wake.call()

    async def carry(self) -> None:
        """Until stopped."""
        opened = False
        while not self._kit.closing:
            self._wake.listen()
            try:
                if not opened:
                    await self._driver.open(self._apart)
                    opened = True
                await self._tell()
                await self._wake_dormant()
            except StoreError as error:
                self._kit.sink.trouble("cannot have tasks carried", error)
                await self._kit.rest(TROUBLE_MS)
                self._wake.call()
            await self._wake.wait()

    async def stop(self, grace_s: float) -> None:
        """Planned stop: calls get their grace, and what is left is given up by others."""
        self._kit.close()
        self._wake.call()
        await self._driver.close(grace_s)
        await super().stop(grace_s)

    @property
    def holder(self) -> WorkerId | None:
        """Nobody here."""
        return None

    @property
    def busy(self) -> int:
        """How many calls are under way here."""
        return self._apart.calls.count + super().busy

    async def _tell(self) -> None:
        self.fresh.forget()
        while self._telling:
            task = next(iter(self._telling))
            await self._driver.tell(task)
            self._telling.discard(task)
        wanted, self._everything = (CLAIMABLE | HELD, False) if self._everything else (CLAIMABLE, False)
        now, seen = self._kit.clock.now(), dict(self._asked)
        self._asked = {}
        which = TaskFilter(statuses=wanted, limit=PAGE)
        while True:
            page = await self._kit.store.list_tasks(which)
            for one in page.items:
                if one.worker is None or wanted is not CLAIMABLE:
                    seq, at = seen.get(one.id, (None, Instant(0)))
                    if seq != one.seq or now >= at + AGAIN_MS or wanted is not CLAIMABLE:
                        await self._driver.tell(one.id)
                        at = now
                    self._asked[one.id] = (one.seq, at)
            if page.next_cursor is None:
                return
            which = TaskFilter(statuses=wanted, limit=PAGE, cursor=page.next_cursor)
