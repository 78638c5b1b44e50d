"""Pressure: while little is left of memory, disk or places at the store, less is begun and told less often.

While too little is left, tasks stand still; then they go on by themselves. Calls in flight may end, nothing is claimed.
A task that somebody resumes meanwhile is left alone until the next time.
"""

from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.events import Who
from everstep.domain.ids import Instant, PauseId, TaskId
from everstep.domain.pauses import PauseType
from everstep.domain.pausing import go_on_after_pressure, pause_for_pressure
from everstep.domain.pressure import Load, Reading, load_of
from everstep.engine.control import command
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.ports.gauge import Gauge
from everstep.ports.store import TaskFilter

EVERY_MS: Final = 5_000
PAGE: Final = 500
_WORDS: Final = {Load.EASE: "there is enough again", Load.BUSY: "little is left", Load.SHORT: "too little is left"}


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
        before, readings = passage.load, self._gauge.read()
        load, short = max(((load_of(one, before), one) for one in readings), key=lambda found: found[0])
        passage.load, pressed = load, load is Load.SHORT
        passage.pressed = short.what if pressed else None
        if load is not before:
            self._kit.sink.note(_WORDS[load], level="warning" if load else "info", what=short.what, in_use=short.level)
            self._kit.feed.tell_all("load", pressed=passage.pressed, level=short.level, load=load.name.lower())
        if not pressed:
            if before is Load.SHORT or not self._settled:
                await self._relieve()
            elif load < before:
                self._loop.nudge()
            return
        self._settled = False
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
