"""Steering: the desk's operations that hold tasks back, one or all, let them go on, or move them in the queue."""

from collections.abc import Mapping

from everstep.domain.events import Who
from everstep.domain.ids import Instant, Millis, TaskId
from everstep.domain.pausing import GRACEFUL
from everstep.domain.task import TaskState
from everstep.domain.words import Words, update_task
from everstep.engine import control
from everstep.engine import halt as halting
from everstep.engine.runtime import Runtime, whole
from everstep.facade.forecast import Forecast
from everstep.facade.keeping import Keeping
from everstep.ports.script import Script
from everstep.ports.traffic import Halt


class Steering(Keeping):
    """Pause, resume, halt; title, labels, priority; and where a task stands in the queue."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.forecast = Forecast(runtime)
        """What is to come."""

    @property
    def scripts(self) -> Mapping[str, Script]:
        """Durable functions that can be started by name."""
        return self._kit.scripts

    def learn(self, script: Script) -> None:
        """A durable function that this engine performs from now on."""
        new = script.plan.name not in self._kit.scripts
        self._kit.scripts[script.plan.name] = script
        if new:
            self._runtime.loop.can_more()

    @whole
    async def pause(self, task: TaskId, who: Who, note: str | None, mode: str = GRACEFUL) -> TaskState:
        """Ask for a pause; `immediate` cuts off what may be called again."""
        self._runtime.require_ready()
        return await self._passed_on(self._told(await control.pause(task, who, note, self._kit, mode=mode)))

    @whole
    async def resume(self, task: TaskId, who: Who, note: str | None) -> TaskState:
        """Lift a pause someone asked for."""
        self._runtime.require_ready()
        return await self._passed_on(self._told(await control.resume(task, who, note, self._kit)))

    @whole
    async def update(
        self,
        task: TaskId,
        who: Who,
        *,
        title: str | None = None,
        labels: dict[str, str] | None = None,
        priority: int | None = None,
        pause_timeout_ms: Millis | None = None,
    ) -> TaskState:
        """Change title, labels, priority or how long it may stay paused; what is not said stays."""
        self._runtime.require_ready()
        wanted = Words(title=title, labels=labels, priority=priority, pause_timeout_ms=pause_timeout_ms)
        return await control.command(task, who, self._kit, lambda state: (update_task(state, wanted), None))

    async def place_of(self, task: TaskId) -> int | None:
        """Its place in the queue, from 1."""
        return await self._kit.passage.traffic.place_of(task)

    @property
    def now(self) -> Instant:
        """The engine's clock."""
        return self._kit.clock.now()

    @property
    def pool_figures(self) -> Mapping[str, tuple[int, int, int]]:
        """Of each pool in use: its size, slots taken, steps waiting."""
        return self._kit.passage.pools.figures()

    @property
    def rate_figures(self) -> Mapping[str, tuple[int, Millis, int, int]]:
        """Of each rate: calls allowed, in how long, made in that time, waiting for their turn."""
        passage = self._kit.passage
        found = passage.paces.figures(passage.rates, self.now)
        return {name: (rate.limit, Millis(rate.period_ms), used, waits) for name, (rate, used, waits) in found.items()}

    @property
    def halted(self) -> Halt | None:
        """Whether everything stands still."""
        return self._kit.passage.halted

    @whole
    async def halt(self, who: Who, note: str | None, mode: str = GRACEFUL) -> Halt:
        """No claim and no call, until somebody lifts it."""
        self._runtime.require_ready()
        wanted = Halt(mode=mode, by=who.actor.id, at=self.now, note=note)
        return await halting.halt(wanted, self._kit, self._runtime.loop)

    @whole
    async def lift_halt(self) -> None:
        """Go on with everything."""
        self._runtime.require_ready()
        await halting.go_on(self._kit, self._runtime.loop)
