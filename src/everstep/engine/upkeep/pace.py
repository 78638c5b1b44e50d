"""Pace: looks now and then whether the calls of some step have become slower, and says so once.

Chance alone makes one window in a hundred look slower, and a busy step has many windows. So what is told must still be
slow when it is looked at again.
"""

from typing import Final, TypeAlias

from everstep.domain.errors import EverstepError
from everstep.domain.ids import Instant
from everstep.domain.regression import Regression, regressions
from everstep.domain.values import JsonObject
from everstep.engine.feed import Notice
from everstep.engine.kit import Kit

EVERY_MS: Final = 60_000
Place: TypeAlias = tuple[str, str, str, str]
"""Owner, plan, step, tool."""
RECENT: Final = 20_000
"""Events that are looked at: some thousands of calls."""


class Pace:
    """One engine's eye on how fast things go."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._next = Instant(0)
        self._slow: set[Place] = set()
        """What was slow at the last look."""
        self._told: set[Place] = set()
        """What was told of, and is slow still."""

    async def look(self) -> None:
        """If it is time to; nothing depends on it, so trouble is only noted."""
        now = self._kit.clock.now()
        if now < self._next:
            return
        self._next = Instant(now + EVERY_MS)
        try:
            found = regressions(await self._kit.store.history.recent(RECENT))
        except EverstepError as error:
            self._kit.sink.trouble("cannot look for regressions", error)
            return
        slow = {(owner, one.plan, one.step, one.tool): one for owner, one in found}
        for place, one in slow.items():
            if place in self._slow and place not in self._told:
                self._told.add(place)
                self._tell(place[0], one)
        self._slow = set(slow)
        self._told &= self._slow

    def _tell(self, owner: str, one: Regression) -> None:
        kit = self._kit
        kit.figures.regressions[(one.tool,)] += 1
        told: JsonObject = {
            "plan": one.plan,
            "tool": one.tool,
            "before_s": one.before_s,
            "now_s": one.now_s,
            "p": one.p,
        }
        kit.sink.note("a step has become slower", level="warning", step=one.step, **told)
        kit.feed.notice(Notice(topic="regression", data={"step": one.step, **told}, owner=owner))
