"""Start and stop in order; the ready gate.

    store opened -> heartbeat -> scan for dead workers' tasks -> gate opens -> claims begin

Nothing is accepted before the scan is done; if it fails, the gate stays closed and says why.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from everstep.domain.errors import EngineClosed, EverstepError, StoreError, StoreFull, Unavailable
from everstep.domain.ids import WorkerId
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

P = ParamSpec("P")
T = TypeVar("T")

CALLS_SHARE: Final = 0.7
"""Of the time to stop, calls get this much; the rest is to write down, say good-bye and let go."""

AGAIN_MS = 1_000
"""Between two tries to join again."""


@record
class Gate:
    """Whether the engine takes work, and if not, why."""

    ready: bool
    reason: str
    recovered: int = 0


class Runtime:
    """One engine's life."""

    def __init__(
        self, kit: Kit, worker: Worker, *, carries: bool, loop: Loop | None = None, gauge: Gauge | None = None
    ) -> None:
        self.kit = kit
        self.loop = loop or Loop(kit)
        self.duties = Duties(kit, self.loop, gauge)
        kit.breakers.wake = self.loop.rouse
        if carries:
            kit.see = self.loop.fresh.keep
        self.troubles = TroubleDesk(kit)
        self.gate = Gate(ready=False, reason="not started")
        self.telemetry: Callable[[], Sequence[Telemetry]] = tuple
        """Who passes on what happens, asked for when it is opened."""
        self._worker = worker
        self._carries = carries
        self._heartbeat: Heartbeat | None = None
        self._carrying: asyncio.Task[None] | None = None
        self._rejoining: asyncio.Task[None] | None = None
        self._telling: list[asyncio.Task[None]] = []
        self._under_way: set[asyncio.Task[Any]] = set()
        """What somebody asked for and is not done yet, whether or not he still waits for it."""

    async def open(self) -> None:
        """Take the store; from here on health answers, and nothing else does."""
        self.kit.loop = asyncio.get_running_loop()
        await self.kit.store.open(self._worker)
        self.kit.breakers.learned(await self.kit.store.troubles.breakers())
        self.gate = Gate(ready=False, reason="recovery scan")
        self._telling = [
            asyncio.create_task(tell_all(self.kit.feed.join(None, own=True), one)) for one in self.telemetry()
        ]
        self._begin_to_beat()

    async def recover(self) -> int:
        """Find what dead workers left, then open the gate."""
        try:
            self.kit.fault("gate.scan.before")
            await self.kit.passage.learn_halt()
            recovered = await scan(self.kit, stale_before(self.kit))
            await halt.hold_back(self.kit)
            self.kit.fault("gate.scan.after")
        except EverstepError as error:
            self.gate = Gate(ready=False, reason=f"the recovery scan failed: {error.message}")
            raise
        self._pass(Gate(ready=True, reason="", recovered=recovered), "live")
        self.duties.meet(carries=self._carries)
        if self._carries:
            self._carrying = asyncio.create_task(self.kit.keep(self.loop.carry, "carrying tasks"))
            self.duties.start()
        return recovered

    def _begin_to_beat(self) -> None:
        shared = self.kit.store.news is not None
        self._heartbeat = Heartbeat(self.kit, self._lose if shared else None)
        self._heartbeat.start()

    def _lose(self) -> None:
        """The lease is somebody else's, or may be: drop everything, and come back as somebody new.

        Whoever is coming back already sees for himself that he has to begin again.
        """
        if not self.kit.closing and (self._rejoining is None or self._rejoining.done()):
            self._pass(Gate(ready=False, reason="the lease was lost; joining again"), "dead")
            self._rejoining = asyncio.create_task(self._rejoin())

    async def _rejoin(self) -> None:
        kit, news = self.kit, self.kit.store.news
        assert self._heartbeat is not None
        assert news is not None
        await self.loop.abandon()
        while not kit.closing:
            self._heartbeat.stop()
            now = kit.clock.now()
            reborn = replace(self._worker, id=WorkerId(kit.entropy.new_id("w")), started_at=now, heartbeat_at=now)
            try:
                await news.rejoin(reborn)
                self._worker, kit.worker = reborn, reborn.id
                kit.actor = replace(kit.actor, id=reborn.id)
                self._begin_to_beat()
                await scan(kit, stale_before(kit))
            except StoreError as error:
                kit.sink.trouble("cannot join again", error)
                await kit.rest(AGAIN_MS)
                continue
            if kit.lapsed:
                continue
            kit.sink.note("joined again", worker=reborn.id)
            self._pass(replace(self.gate, ready=True, reason=""), "live")
            self.loop.look_again()
            return

    async def see_through(self, work: Coroutine[Any, Any, T]) -> T:
        """Begun is done: who stops waiting loses the answer, never the half between a write and its nudge."""
        begun = self.kit.loop.create_task(self._doubted(work))
        self._under_way.add(begun)
        begun.add_done_callback(self._under_way.discard)
        return await asyncio.shield(begun)

    async def _doubted(self, work: Coroutine[Any, Any, T]) -> T:
        """What the store has not answered may have been carried out."""
        try:
            return await work
        except (Unavailable, StoreFull) as trouble:
            self.kit.doubt(trouble.code)
            raise

    async def close(self) -> None:
        """Planned stop: grace for calls, then everything is let go and marked released."""
        self._pass(Gate(ready=False, reason="stopping"), "draining")
        self.kit.fault("stop.release.before")
        try:
            await self._stop()
        finally:  # whatever went wrong, the next engine is to find the store free
            await self.kit.store.close()

    async def _stop(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=self.kit.limits.shutdown_grace_s * (1 - CALLS_SHARE))
        if self._rejoining is not None:
            self.kit.close()
            await self._rejoining
        await self.loop.stop(self.kit.limits.shutdown_grace_s * CALLS_SHARE)
        self.duties.stop()
        await self.duties.part()
        if self._carrying is not None:
            await self._carrying
            await self.duties.end()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self.kit.feed.close()
        for telling in self._telling:
            await telling
        for error, tools in await self.kit.catalog.close():
            self.kit.sink.trouble("tools could not be closed", error, tools=tools)

    def _pass(self, gate: Gate, status: str) -> None:
        """Another state of the gate, told to whoever watches all tasks."""
        self.gate = gate
        self.kit.feed.tell_all("server", ready=gate.ready, reason=gate.reason)
        self.kit.feed.tell_all("worker", id=self.kit.worker, status=status)

    async def die(self) -> None:
        """As if the process were killed: every task of the loop is dropped unheard, nothing is written or released."""
        self.gate = Gate(ready=False, reason="it was killed")  # who still holds on to it can write nothing more
        own = (self._carrying, self._rejoining)
        duties = [*(duty for duty in own if duty is not None), *self.duties.running, *self._under_way]
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


class Behind(Protocol):
    """Who has an engine behind it."""

    @property
    def runtime(self) -> Runtime:
        """That engine."""


B = TypeVar("B", bound=Behind)


def whole(
    operation: Callable[Concatenate[B, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[B, P], Coroutine[Any, Any, T]]:
    """For an operation that writes: it is seen through, whoever stops waiting for it."""

    @wraps(operation)
    def begun(desk: B, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return desk.runtime.see_through(operation(desk, *args, **kwargs))

    return begun
