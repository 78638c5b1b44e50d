"""The world of a simulation: plans, and tools that keep account of what was really done."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from everstep import Ctx, Transient, tool
from everstep.domain.ids import Instant
from everstep.testing.clock import VirtualClock
from everstep.torture.history import Effect

LONG = "long " * 8_000
"""More than an event holds, so that it has to be read again."""
PLAIN: dict[str, Any] = {
    "name": "sim",
    "parallel": 2,
    "steps": [
        {"id": "a", "tool": "sim.once", "approve": "Do it?", "on_error": "pause"},
        {"id": "b", "tool": "sim.idempotent", "needs": []},
        {"id": "c", "tool": "sim.pure", "needs": ["b"]},
        {"id": "d", "tool": "sim.once", "needs": ["a", "c"]},
    ],
    "finally": [{"id": "tidy", "tool": "sim.pure"}],
}
BUSY: dict[str, Any] = {
    "name": "busy",
    "parallel": 3,
    "steps": [
        {"id": "a", "tool": "sim.busy", "needs": [], "retry": {"times": 3, "delay": "1s"}},
        {"id": "b", "tool": "sim.busy", "needs": [], "retry": {"times": 3, "delay": "2s"}},
        {"id": "c", "tool": "sim.busy", "needs": [], "for_each": [1, 2, 3], "parallel": 2, "pool": "narrow"},
        {"id": "long", "tool": "sim.long", "needs": []},
        {"id": "rest", "tool": "wait", "with": {"for": "3s"}, "needs": ["long"]},
        {"id": "d", "tool": "sim.once", "needs": ["a", "b", "rest"], "on_error": "pause"},
        {"id": "e", "tool": "sim.read", "with": {"text": "${long.text}"}, "needs": ["c", "d"], "pool": "narrow"},
    ],
    "finally": [{"id": "tidy", "tool": "sim.pure"}],
}
RACE: dict[str, Any] = {
    "name": "race",
    "parallel": 2,
    "steps": [
        {"id": "a", "tool": "sim.timed", "needs": [], "timeout": "2s", "retry": {"times": 1, "delay": "1ms"}},
        {"id": "b", "tool": "sim.timed_once", "needs": [], "timeout": "2s", "on_error": "pause"},
        {"id": "c", "tool": "sim.pure", "needs": ["a", "b"]},
    ],
    "finally": [{"id": "tidy", "tool": "sim.pure"}],
}
SHAPES = {"plain": PLAIN, "busy": BUSY, "race": RACE}
"""Questions and effects; or rates, retries that come due together, pools, large outputs and timers; or calls that end
when their time does."""
TIMED_MS, ABOUT_MS = 2_000, 3
"""When a timed call ends, and how far from that at most."""


@dataclass
class World:
    """What was really done, in order."""

    clock: VirtualClock
    chance: random.Random
    latency_ms: int = 0
    failures: float = 0.6
    """How many of the first calls of somebody busy fail."""
    changing: bool = False
    """Every other engine has another version of some tools: what was allowed before, was not for these."""
    effects: list[Effect] = field(default_factory=list)

    def tools(self, incarnation: str) -> list[object]:
        """Tools of one engine: they tell the world which one called."""
        version = "2" if self.changing and int(incarnation) % 2 else "1"

        async def work(ctx: Ctx, output: dict[str, Any], *, busy: bool = False, timed: bool = False) -> dict[str, Any]:
            said = (ctx.task_id, ctx.step_id, ctx.attempt, ctx.idempotency_key, int(incarnation), incarnation)
            self.effects.append(Effect(*said, "start", self.clock.now(), output=output))
            await (self._until_its_time() if timed else self.pause())
            if busy and self.chance.random() < self.failures:
                raise Transient("later")
            self.effects.append(Effect(*said, "end", self.clock.now(), output=output))
            await self.pause()
            return output

        def made(name: str, effect: str, *, timed: bool = False) -> object:
            @tool(name, effect=effect, version=version)
            async def called(*, ctx: Ctx) -> dict[str, Any]:
                return await work(ctx, {"n": 1}, timed=timed)

            return called

        @tool("sim.busy", effect="pure", rate="3/1s")
        async def often(*, ctx: Ctx) -> dict[str, Any]:
            return await work(ctx, {"n": 1}, busy=ctx.attempt <= 3)

        @tool("sim.long", effect="pure")
        async def long(*, ctx: Ctx) -> dict[str, Any]:
            return await work(ctx, {"n": 1, "text": LONG})

        @tool("sim.read", effect="pure")
        async def read(text: str, *, ctx: Ctx) -> dict[str, Any]:
            return await work(ctx, {"n": len(text)})

        plain = [made("sim.once", "once"), made("sim.idempotent", "idempotent"), made("sim.pure", "pure")]
        in_time = [made("sim.timed", "pure", timed=True), made("sim.timed_once", "once", timed=True)]
        return [*plain, often, long, read, *in_time]

    async def _until_its_time(self) -> None:
        """When the time of the call is over: a little before, then, or a little after."""
        ends = self.clock.now() + TIMED_MS + self.chance.randint(-ABOUT_MS, ABOUT_MS)
        await self.clock.sleep_until(Instant(ends))

    async def pause(self) -> None:
        """A while: of turns, or of time."""
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)
        if self.latency_ms:
            await self.clock.sleep_until(Instant(self.clock.now() + self.chance.randrange(self.latency_ms)))
