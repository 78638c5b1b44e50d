"""Pressure: while too little is left of memory or disk, tasks stand still; then they go on by themselves.

Calls in flight may end, nothing is claimed. A task that somebody resumes meanwhile is left alone until the next time.
"""

from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.events import Who
from everstep.domain.ids import Instant, PauseId, TaskId
from everstep.domain.pauses import PauseType
from everstep.domain.pausing import go_on_after_pressure, pause_for_pressure
from everstep.domain.pressure import Reading, short_of
from everstep.engine.control import command
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.ports.gauge import Gauge
from everstep.ports.store import TaskFilter

EVERY_MS: Final = 5_000
PAGE: Final = 500


class Pressure:
    """One engine's eye on the machine."""

    def __init__(self, kit: Kit, gauge: Gauge, loop: Loop) -> None:
        self._kit = kit
        self._gauge = gauge
        self._loop = loop
        self._paused: set[TaskId] = set()
        self._settled = False
        """Whether nobody is left standing from before."""

    async def watch(self) -> None:
        """Until dropped."""
        while True:
            try:
                await self._look()
            except EverstepError as error:
                self._kit.sink.trouble("cannot look after pressure", error)
            await self._kit.clock.sleep_until(Instant(self._kit.clock.now() + EVERY_MS))

    async def _look(self) -> None:
        passage = self._kit.passage
        already = passage.pressed is not None
        short = next((one for one in self._gauge.read() if short_of(one, already=already)), None)
        if short is None:
            if already or not self._settled:
                await self._relieve()
            return
        self._settled = False
        if not already:
            self._kit.sink.note("too little is left", level="warning", what=short.what, in_use=short.level)
            self._kit.feed.tell_all("load", pressed=short.what, level=short.level)
        passage.pressed = short.what
        for task, owner in self._loop.walking().items():
            if task not in self._paused:
                self._paused.add(task)
                await self._pause(task, owner, short)

    async def _pause(self, task: TaskId, owner: str, short: Reading) -> None:
        kit = self._kit
        name = PauseId(kit.entropy.new_id("p"))
        who = Who(owner=owner, actor=kit.actor)
        await command(task, who, kit, lambda state: (pause_for_pressure(state, name, short), None))
        self._loop.nudge(task)

    async def _relieve(self) -> None:
        """There is enough again: whoever stands still because of it goes on, from before a restart too."""
        kit = self._kit
        if kit.passage.pressed is not None:
            kit.feed.tell_all("load", pressed=None, level=None)
        kit.passage.pressed = None
        self._paused.clear()
        page = await kit.store.list_tasks(TaskFilter(reason=PauseType.RESOURCE_PRESSURE, limit=PAGE))
        own = self._loop.own
        for item in page.items:
            if own is not None and item.id not in own:
                continue
            who = Who(owner=item.owner, actor=kit.actor)
            await command(item.id, who, kit, lambda state: (go_on_after_pressure(state), None))
            self._loop.nudge(item.id)
        self._settled = len(page.items) < PAGE
        self._loop.nudge()
