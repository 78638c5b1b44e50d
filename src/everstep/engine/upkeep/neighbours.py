"""Other engines on the same store: what they left, what they said, what they did to tasks that are watched here.

Hints come at once where the store can be listened to; everything is also looked for, so that a lost hint only costs
time. Nothing here is needed where the store has one engine.
"""

from collections.abc import Mapping

from everstep.domain.errors import StoreError
from everstep.domain.ids import Instant, Seq, TaskId
from everstep.domain.values import JsonObject
from everstep.engine.feed import Notice
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.engine.recover import scan, stale_before
from everstep.ports.news import Heard, News

WATCHED_S = 0.25
"""Between two looks at tasks that somebody watches here."""
DEAF_S = 0.5
"""Between two looks for commands where hints do not come."""
LISTENING_S = 5.0
SOON_S = 0.05
CLAIM_MS = 1_000
AFTER_TROUBLE_MS = 1_000
UNCLAIMED_MS = 60_000
"""After so long a task that nobody can carry is reported."""


class Neighbours:
    """One engine's eye on the others. `carries`: whether it takes over what they leave."""

    def __init__(self, kit: Kit, loop: Loop, news: News, *, carries: bool) -> None:
        self._kit = kit
        self._loop = loop
        self._news = news
        self._carries = carries
        self._told: dict[TaskId, int] = {}
        self._heads: dict[TaskId | None, Seq] = {}
        self._end = 0
        self._claim_at = self._sweep_at = Instant(0)
        self._halted = kit.passage.halted is not None
        """What the walks were last told; one of them may have learned more meanwhile."""
        self._listening = False
        self._refused = 0
        self._report_at = Instant(0)
        self._reported: set[TaskId] = set()

    async def watch(self) -> None:
        """Until stopped."""
        kit = self._kit
        while not kit.closing:
            heard = await self._news.wait(self._pace())
            self._listening = heard.listening
            try:
                await self._look(heard)
            except StoreError as error:
                kit.sink.trouble("cannot look what other engines do", error)
                await kit.clock.sleep_until(Instant(kit.clock.now() + AFTER_TROUBLE_MS))

    def _pace(self) -> float:
        """Until the next look, which is not later than the next sweep."""
        shared = self._kit.passage.shared
        if self._kit.feed.watched or (shared is not None and shared.waiting):
            return WATCHED_S
        pace = LISTENING_S if self._listening else DEAF_S
        if not self._carries:
            return pace
        return max(SOON_S, min(pace, (self._sweep_at - self._kit.clock.now()) / 1000))

    async def _look(self, heard: Heard) -> None:
        told = await self._news.told(self._loop.holder) if self._carries else {}
        await self._watched(told)
        if not self._carries or self._kit.closing:
            return
        for task in sorted(heard.tasks):
            self._loop.hear(task)
        if self._kit.passage.shared is not None:
            self._kit.passage.shared.look()
        for task, times in told.items():
            if self._told.get(task) != times:
                self._loop.hear(task)
        self._told = dict(told)
        now = self._kit.clock.now()
        if now >= self._sweep_at:
            jitter = 0.8 + 0.4 * self._kit.entropy.draw()
            self._sweep_at = Instant(now + int(self._kit.limits.janitor_ms * jitter))
            await self._sweep()
        if now >= self._claim_at:
            self._claim_at = Instant(now + CLAIM_MS)
            self._loop.nudge()

    async def _sweep(self) -> None:
        """What the dead have left, what was halted, which breakers have opened, which pauses run out."""
        kit, refused = self._kit, self._news.refused
        if refused != self._refused:
            kit.sink.note("late writes were refused", count=refused - self._refused)
            self._refused = refused
        if await scan(kit, stale_before(kit)):
            self._loop.nudge()
        await kit.passage.learn_halt()
        if self._halted != (kit.passage.halted is not None):
            if self._halted:
                kit.passage.lifted_at = kit.clock.now()
            self._halted = not self._halted
            self._loop.look_again()
        await self._report_unclaimed(kit.clock.now())
        kit.breakers.compare(await kit.store.troubles.breakers())
        kit.expect(kit.clock.now())

    async def _report_unclaimed(self, now: Instant) -> None:
        """What nobody can carry is not failed, but said: once a task, again when somebody could and went."""
        if now < self._report_at:
            return
        self._report_at = Instant(now + UNCLAIMED_MS)
        found = {one.task: one for one in await self._news.unclaimed(Instant(now - UNCLAIMED_MS))}
        for task, one in found.items():
            if task not in self._reported:
                said: JsonObject = {"missing": list(one.missing)}
                self._kit.sink.note("no worker can carry this task", level="warning", task=task, **said)
                self._kit.feed.notice(Notice(topic="tool", data={"task": task, **said}, owner=one.owner))
        self._reported = set(found)

    async def _watched(self, told: Mapping[TaskId, int]) -> None:
        """Whoever watches a task goes back to its journal when somebody else has written it.

        A task that walks here, and that nobody else has spoken of, is written here only: its watchers are told.
        """
        feed = self._kit.feed
        for task in feed.joined():  # what came before may not have been told to whoever has just come
            self._heads.pop(task, None)
            self._end = 0 if task is None else self._end
        watched, own = feed.watched, self._loop.walking().keys() - told.keys()
        foreign = [task for task in watched if task is not None and task not in own]
        heads = await self._news.heads(foreign) if foreign else {}
        for task, seq in heads.items():
            if self._heads.get(task) != seq:
                feed.look_again(task)
        self._heads = dict(heads.items())
        if None in watched:
            last = await self._kit.store.tail.last()
            if last is not None and last.place != self._end:
                self._end = last.place
                feed.look_again(None)
