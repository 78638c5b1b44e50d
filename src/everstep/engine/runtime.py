"""Start and stop in order; the ready gate.

    store opened -> heartbeat -> scan for dead workers' tasks -> gate opens -> claims begin

Nothing is accepted before the scan is done; if it fails, the gate stays closed and says why.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from everstep.domain.errors import EngineClosed, EverstepError
from everstep.domain.ids import TaskId
from everstep.domain.record import record
from everstep.engine import halt
from everstep.engine.heartbeat import Heartbeat
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.engine.recover import scan, stale_before
from everstep.engine.troubles import TroubleDesk
from everstep.engine.upkeep.duties import Duties
from everstep.engine.upkeep.telling import tell_all
from everstep.ports.gauge import Gauge
from everstep.ports.store import Worker
from everstep.ports.telemetry import Telemetry

CALLS_SHARE: Final = 0.7
"""Of the time to stop, calls get this much; the rest is to write down, say good-bye and let go."""


@record
class Gate:
    """Whether the engine takes work, and if not, why."""

    ready: bool
    reason: str
    recovered: int = 0


class Runtime:
    """One engine's life."""

    def __init__(
        self, kit: Kit, worker: Worker, *, carries: bool, only: Iterable[TaskId] | None, gauge: Gauge | None = None
    ) -> None:
        self.kit = kit
        self.loop = Loop(kit, only)
        self.duties = Duties(kit, self.loop, gauge)
        kit.breakers.wake = self.loop.rouse
        self.troubles = TroubleDesk(kit)
        self.gate = Gate(ready=False, reason="not started")
        self.telemetry: Callable[[], Sequence[Telemetry]] = tuple
        """Who passes on what happens, asked for when it is opened."""
        self._worker = worker
        self._carries = carries
        self._heartbeat: Heartbeat | None = None
        self._carrying: asyncio.Task[None] | None = None
        self._telling: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Take the store; from here on health answers, and nothing else does."""
        self.kit.loop = asyncio.get_running_loop()
        await self.kit.store.open(self._worker)
        self.kit.breakers.learned(await self.kit.store.troubles.breakers())
        self.gate = Gate(ready=False, reason="recovery scan")
        self._telling = [asyncio.create_task(tell_all(self.kit.feed.join(None), one)) for one in self.telemetry()]
        self._heartbeat = Heartbeat(self.kit)
        self._heartbeat.start()

    async def recover(self) -> int:
        """Find what dead workers left, then open the gate."""
        try:
            self.kit.fault("gate.scan.before")
            await halt.learn(self.kit)
            recovered = await scan(self.kit, stale_before(self.kit))
            self.kit.fault("gate.scan.after")
        except EverstepError as error:
            self.gate = Gate(ready=False, reason=f"the recovery scan failed: {error.message}")
            raise
        self._pass(Gate(ready=True, reason="", recovered=recovered), "live")
        if self._carries:
            self._carrying = asyncio.create_task(self.loop.carry())
            self.duties.start()
        return recovered

    async def close(self) -> None:
        """Planned stop: grace for calls, then everything is let go and marked released."""
        self._pass(Gate(ready=False, reason="stopping"), "draining")
        self.kit.fault("stop.release.before")
        await self.loop.stop(self.kit.limits.shutdown_grace_s * CALLS_SHARE)
        self.duties.stop()
        if self._carrying is not None:
            await self._carrying
            await self.duties.end()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self.kit.feed.close()
        for telling in self._telling:
            await telling
        await self.kit.catalog.close()
        await self.kit.store.close()

    def _pass(self, gate: Gate, status: str) -> None:
        """Another state of the gate, told to whoever watches all tasks."""
        self.gate = gate
        self.kit.feed.tell_all("server", ready=gate.ready, reason=gate.reason)
        self.kit.feed.tell_all("worker", id=self.kit.worker, status=status)

    async def die(self) -> None:
        """As if the process were killed: every task of the loop is dropped unheard, nothing is written or released."""
        duties = [*([] if self._carrying is None else [self._carrying]), *self.duties.running]
        for duty in duties:
            duty.cancel()
        if duties:
            await asyncio.wait(duties)
        await self.loop.die()
        self.kit.feed.close()

    def require_ready(self) -> None:
        """Nothing is accepted while the gate is closed."""
        if not self.gate.ready:
            raise EngineClosed(f"the engine takes no work now: {self.gate.reason}")
