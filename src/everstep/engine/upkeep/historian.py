"""History in, a little later: what the journal says of ends is gathered off the walk, and kept as sketches.

Nobody counts while steps run. Whoever stirs it (a walk ended, somebody asked for an estimate) makes it look a few
seconds later, and again while there is more; an engine at rest looks at nothing.
"""

import asyncio
from dataclasses import replace
from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.history import HistoryKey, grouped, hour_of
from everstep.domain.ids import Instant
from everstep.domain.values import JsonValue, Sealed
from everstep.engine.kit import Kit
from everstep.engine.upkeep.pace import Pace
from everstep.ports.history import Gathered, Observed

EVERY_MS: Final = 5_000
PART: Final = 5_000
"""Events that are gathered at once: some milliseconds and a megabyte, in a thread of the store."""
KEEP_HOURS: Final = 30 * 24
CLOSING_S: Final = 0.5
"""What a planned stop may take; the rest is gathered at the next start."""


class Historian:
    """One engine's way from the journal to history."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._stirred = asyncio.Event()
        self._sized = kit.catalog.sized
        self._forgotten = 0
        self._scored: list[Observed] = []
        """How estimates have held: kept with what is gathered next."""
        self._pace = Pace(kit)

    def score(self, one: Observed) -> None:
        """An estimate was held against what came of it."""
        self._scored.append(one)
        self.stir()

    def stir(self) -> None:
        """Something may have ended."""
        self._stirred.set()

    async def watch(self) -> None:
        """Until stopped."""
        self._stirred.set()  # a crash may have left something
        while not self._kit.closing:
            await self._stirred.wait()
            self._stirred.clear()
            try:
                more = await self.catch_up()
            except EverstepError as error:
                self._kit.sink.trouble("cannot keep history", error)
                more = True
            if more:
                self._stirred.set()
                await self._pace.look()
            await self._kit.clock.sleep_until(Instant(self._kit.clock.now() + EVERY_MS))

    async def catch_up(self, within_s: float | None = None) -> bool:
        """Everything that ended so far, but not what ends meanwhile: that may wait; whether there was anything."""
        kit = self._kit
        until = None if within_s is None else kit.clock.monotonic() + within_s
        found = False
        while until is None or kit.clock.monotonic() < until:
            gathered = await kit.store.history.gather(self._sized, PART)
            if gathered.upto == gathered.after and not self._scored:
                break
            found = True
            await self._keep(gathered)
            if gathered.upto - gathered.after < PART:
                break
        return found

    async def _keep(self, gathered: Gathered) -> None:
        history, hour = self._kit.store.history, hour_of(self._kit.clock.now())
        scored, self._scored = self._scored, []
        seen = [(await self._key(one), one.hour, one.ms, one.count) for one in (*gathered.observed, *scored)]
        rows = [row for row in grouped(seen) if row.bucket == 0 or row.bucket >= hour - KEEP_HOURS]
        if not await history.keep(gathered, rows):
            return
        self._kit.kept += 1
        if hour > self._forgotten:
            self._forgotten = hour
            await history.forget(hour - KEEP_HOURS)

    async def _key(self, one: Observed) -> HistoryKey:
        if one.input is None:
            return one.key
        prior = self._kit.catalog.prior(one.key.name, await self._arguments(one.input))
        return one.key if prior is None else replace(one.key, size=prior.size_class)

    async def _arguments(self, sealed: Sealed) -> JsonValue:
        if sealed.present:
            return sealed.value
        (value,) = await self._kit.store.get_payloads((sealed.digest,))
        return value
