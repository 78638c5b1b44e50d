"""Results that are asked for again: of a pure tool with a `cache_ttl`, for its owner, by exactly these arguments.

In memory, the least used goes first; whoever asks while a call is under way waits for it instead of calling too.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256

from everstep.domain.ids import Millis
from everstep.domain.outcome import Outcome, Succeeded
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.task import Intent, TaskState
from everstep.domain.values import JsonObject, Sealed
from everstep.ports.clock import Clock
from everstep.ports.tool import CACHE, ToolSpec


@record
class Kept:
    """A result, and when it was had."""

    outcome: Succeeded
    at: float


class Results:
    """What one engine remembers."""

    def __init__(self) -> None:
        self.bytes_max = 1_000_000_000
        self._bytes = 0
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[Outcome]] = {}

    @staticmethod
    def key(intent: Intent, state: TaskState, spec: ToolSpec, arguments: JsonObject) -> str | None:
        """What a result is kept under; None: this call is to be made, whatever is kept.

        Arguments name secrets and do not hold them, so the name of a credential is part of the key.
        """
        attempt, detour = intent.attempt, state.steps[intent.step].detour
        less = detour is not None and detour.degraded is not None
        if attempt.effect is not Effect.PURE or less or arguments.get(CACHE) == "off":
            return None
        said = [state.owner, spec.name, spec.version, attempt.input.digest]
        return sha256("\0".join(said).encode()).hexdigest()

    async def made(self, key: str, ttl_ms: Millis, clock: Clock, make: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """The one that is kept, if it is young enough; else a new one, made once for all who ask meanwhile."""
        while True:
            kept = self._kept.get(key)
            if kept is not None and clock.monotonic() - kept.at <= ttl_ms / 1000:
                self._kept.move_to_end(key)
                return _again(kept.outcome, clock.monotonic() - kept.at)
            running = self._under_way.get(key)
            if running is None:
                return await self._make(key, clock, make)
            await asyncio.wait((running,))  # if it came to nothing, this one is made

    async def _make(self, key: str, clock: Clock, make: Callable[[], Awaitable[Outcome]]) -> Outcome:
        mine = self._under_way[key] = asyncio.get_running_loop().create_future()
        try:
            outcome = await make()
            if isinstance(outcome, Succeeded):
                self._keep(key, Kept(outcome=outcome, at=clock.monotonic()))
            return outcome
        finally:
            del self._under_way[key]
            mine.cancel()

    def _keep(self, key: str, kept: Kept) -> None:
        before = self._kept.pop(key, None)
        self._bytes += _size(kept) - (0 if before is None else _size(before))
        self._kept[key] = kept
        while self._bytes > self.bytes_max:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= _size(oldest)


def _again(outcome: Succeeded, age_s: float) -> Succeeded:
    """The same result for another step: what it cost was paid for."""
    old = outcome.output
    output = Sealed(
        old.value, old.digest, old.size_bytes, raw=old.raw, untrusted=old.untrusted, by_reference=old.by_reference
    )
    return replace(outcome, output=output, wall_s=0.0, usage=None, cached_s=round(age_s, 3))


def _size(kept: Kept) -> int:
    return kept.outcome.output.size_bytes
