"""After the commit: sealed events to bounded queues, by seq. Carries envelopes it cannot read.

A subscriber joins first, then reads the journal up to the head it finds, then drops what it has already seen. So it
gets every event once, in order; a queue that overflows says so and is closed, and its reader goes back to the
journal. The feed is a hint about what is durable, never the truth.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from everstep.domain.ids import TaskId
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.store import Journaled

QUEUE_MAX = 1000


@record
class Notice:
    """Something changed that is no event of a task: only a hint to look. `owner` None: it concerns everybody."""

    topic: str
    data: JsonObject
    owner: str | None = None


Hear: TypeAlias = Callable[[Notice], None]


class Subscription:
    """One reader's queue. `overflowed` means: read the journal again from your last seq."""

    __slots__ = ("_feed", "_items", "_types", "_wake", "closed", "overflowed", "own", "task")

    def __init__(self, feed: "Feed", task: TaskId | None, types: frozenset[str] | None, *, own: bool = False) -> None:
        self.own = own
        self._feed = feed
        self._items: deque[Journaled] = deque()
        self._types = types
        self._wake = asyncio.Event()
        self.task = task
        self.overflowed = False
        self.closed = False

    def push(self, events: Sequence[Journaled]) -> None:
        """Called by the feed, after the commit."""
        types = self._types
        wanted = events if types is None else [event for event in events if event.type in types]
        if not wanted:
            return
        if len(self._items) + len(wanted) > QUEUE_MAX:
            self.overflowed = True
            self._items.clear()
        if not self.overflowed:
            self._items.extend(wanted)
        self._wake.set()

    def look_again(self) -> None:
        """There may be more in the journal than was told here."""
        self.overflowed = True
        self._wake.set()

    def close(self) -> None:
        """No more events: the engine stops, or the reader leaves."""
        self.closed = True
        self._feed.leave(self)
        self._wake.set()

    async def wait(self) -> list[Journaled]:
        """What has come since the last call; empty when it overflowed or closed."""
        while not self._items and not self.overflowed and not self.closed:
            self._wake.clear()
            await self._wake.wait()
        taken = list(self._items)
        self._items.clear()
        return taken

    def caught_up(self) -> None:
        """The reader has read the journal again."""
        self.overflowed = False


class Feed:
    """Who listens to what. One per engine, used on its loop only."""

    def __init__(self) -> None:
        self._by_task: dict[TaskId, list[Subscription]] = {}
        self._all: list[Subscription] = []
        self._hearing: list[Hear] = []
        self._closed = False
        self._joined: list[TaskId | None] = []

    def joined(self) -> list[TaskId | None]:
        """What somebody began to read since this was asked last."""
        joined, self._joined = self._joined, []
        return joined

    def join(self, task: TaskId | None, types: frozenset[str] | None = None, *, own: bool = False) -> Subscription:
        """Listen to one task, or to all; to these types of events, or to every one; `own`: of this engine only."""
        subscription = Subscription(self, task, types, own=own)
        if len(self._joined) < QUEUE_MAX:
            self._joined.append(task)
        if self._closed:
            subscription.closed = True
        elif task is None:
            self._all.append(subscription)
        else:
            self._by_task.setdefault(task, []).append(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Stop listening; leaving twice is harmless."""
        listeners = self._all if subscription.task is None else self._by_task.get(subscription.task, [])
        if subscription in listeners:
            listeners.remove(subscription)
        if subscription.task is not None and not listeners:
            self._by_task.pop(subscription.task, None)

    def publish(self, events: Sequence[Journaled]) -> None:
        """Tell what one commit wrote, after it only; tasks that it made come last."""
        if not events:
            return
        task = events[0].task
        mine = events if events[-1].task == task else [event for event in events if event.task == task]
        for listeners in (self._by_task.get(task, ()), self._all):
            for subscription in listeners:
                subscription.push(mine)
        if mine is not events:
            self.publish(events[len(mine) :])

    def gone(self, task: TaskId) -> None:
        """A task was deleted: there will never be more of it."""
        for subscription in list(self._by_task.get(task, ())):
            subscription.close()

    @property
    def watched(self) -> list[TaskId | None]:
        """Tasks that somebody reads on; None stands for all of them."""
        everything: list[TaskId | None] = [None] if any(not one.own for one in self._all) else []
        return [*self._by_task, *everything]

    def look_again(self, task: TaskId | None) -> None:
        """Another engine has written: whoever reads goes back to the journal. None: who reads all of them."""
        for one in [*(self._all if task is None else self._by_task.get(task, ()))]:
            if not one.own:
                one.look_again()

    def notice(self, notice: Notice) -> None:
        """Tell those who want to hear of such things."""
        for hear in self._hearing:
            hear(notice)

    def tell_all(self, topic: str, **data: JsonValue) -> None:
        """The same of what concerns everybody."""
        self.notice(Notice(topic=topic, data=data))

    def hear(self, hear: Hear) -> Callable[[], None]:
        """Hear every notice; returns how to stop."""
        self._hearing.append(hear)
        return lambda: self._hearing.remove(hear)

    def close(self) -> None:
        """The engine stops: every reader learns it, and whoever comes later."""
        self._closed = True
        for subscription in [*self._all, *(one for many in self._by_task.values() for one in many)]:
            subscription.close()
