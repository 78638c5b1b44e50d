"""What one engine looks after beside the walks: pauses that run out, history, promises, old tasks, the machine."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.engine.passage import share_pools
from everstep.engine.upkeep.doubt import Doubt
from everstep.engine.upkeep.historian import CLOSING_S, Historian
from everstep.engine.upkeep.neighbours import Neighbours
from everstep.engine.upkeep.pressure import Pressure
from everstep.engine.upkeep.retention import Retention
from everstep.engine.upkeep.rounds import Rounds
from everstep.engine.upkeep.schedule import Schedule
from everstep.engine.upkeep.timers import Timers
from everstep.ports.gauge import Gauge


class Duties:
    """Started with the gate, ended after the walks."""

    def __init__(self, kit: Kit, loop: Loop, gauge: Gauge | None) -> None:
        self.historian = Historian(kit)
        self.schedule = Schedule(kit, lambda: loop.carried, self.historian.score)
        self.doubt = Doubt(kit, loop)
        kit.stir, kit.doubt = self._stir, self.doubt.stir
        self._timers = Timers(kit, lambda: loop.own, loop.nudge)
        self.rounds = Rounds(kit, lambda: loop.carried)
        self._pressure = None if gauge is None else Pressure(kit, gauge, loop)
        self._kit = kit
        self._loop = loop
        self._meeting: asyncio.Task[None] | None = None
        self._timing: asyncio.Task[None] | None = None
        self._watches: list[asyncio.Task[None]] = []

    def _stir(self) -> None:
        """Something began or ended."""
        self.historian.stir()
        self.schedule.stir()
        self.rounds.stir()

    def meet(self, *, carries: bool) -> None:
        """Look what other engines do, if there are any."""
        news = self._kit.store.news
        if news is not None:
            share_pools(self._kit.passage, news.slots, lambda: self._kit.worker, self._loop.nudge)
            neighbours = Neighbours(self._kit, self._loop, news, carries=carries)
            self._meeting = self._begin(neighbours.watch, "looking at other engines")

    async def part(self) -> None:
        """Look no more."""
        if self._meeting is not None:
            self._meeting.cancel()
            await asyncio.wait((self._meeting,))

    def start(self) -> None:
        """From now on."""
        self._timing = self._begin(self._timers.watch, "looking after pauses")
        duties = {
            "keeping history": self.historian.watch,
            "looking at the schedule": self.schedule.watch,
            "asking tools how they are": self.rounds.watch,
            "looking again after a doubt": self.doubt.watch,
        }
        if self._loop.own is None:
            duties["deleting old tasks"] = Retention(self._kit).watch
        if self._pressure is not None:
            duties["looking at the machine"] = self._pressure.watch
        self._watches = [self._begin(duty, what) for what, duty in duties.items()]

    def _begin(self, duty: Callable[[], Coroutine[Any, Any, None]], what: str) -> asyncio.Task[None]:
        return asyncio.create_task(self._kit.keep(duty, what))

    def stop(self) -> None:
        """The engine closes."""
        self._timers.stop()

    async def end(self) -> None:
        """They have heard that we close; history may take a moment to catch up."""
        if self._timing is not None:
            await self._timing
        for watch in self._watches:
            watch.cancel()
        await asyncio.wait(self._watches)
        await self.historian.catch_up(CLOSING_S)

    @property
    def running(self) -> list[asyncio.Task[None]]:
        """All of them."""
        single = [duty for duty in (self._timing, self._meeting) if duty is not None]
        return [*single, *self._watches]
