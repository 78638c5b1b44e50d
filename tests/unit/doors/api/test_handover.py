"""From the journal to what happens now, while somebody writes in the middle of it: every moment, a thousand times."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

import pytest

from everstep.adapters.stores.memory import MemoryStore
from everstep.adapters.stores.memory_tail import MemoryTail
from everstep.domain.ids import Seq, TaskId
from everstep.doors.api import stream as stream_module
from everstep.doors.api.line import cursor_of
from everstep.facade import desk as desk_module
from everstep.ports.store import Journaled, Placed
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ANA, HOLD, Window
from tests.unit.engine.plans import Tools

Strike = Callable[[], Awaitable[None]]


class Struck:
    """A failpoint before and after each read of a journal: at the chosen passage somebody writes."""

    def __init__(self) -> None:
        self.strike: Strike | None = None
        self.at: set[int] = set()
        self.passed = 0

    async def pass_by(self) -> None:
        self.passed += 1
        strike = self.strike
        if strike is not None and self.passed in self.at:
            self.strike = None  # what it reads itself is not struck
            await strike()
            self.strike = strike


class StruckTail(MemoryTail):
    def __init__(self, point: Struck) -> None:
        super().__init__()
        self._point = point

    async def read(self, after: int, limit: int, owner: str | None = None) -> Sequence[Placed]:
        await self._point.pass_by()
        found = await super().read(after, limit, owner)
        await self._point.pass_by()
        return found


class StruckStore(MemoryStore):
    def __init__(self, point: Struck) -> None:
        super().__init__()
        self._point = point
        self.tail = StruckTail(point)

    async def read_events(self, task: TaskId, after: Seq, limit: int) -> Sequence[Journaled]:
        await self._point.pass_by()
        found = await super().read_events(task, after, limit)
        await self._point.pass_by()
        return found


class Seen:
    """The seqs that one watcher gets."""

    def __init__(self, window: Window, target: str) -> None:
        self.seqs: list[int] = []
        self.live = asyncio.Event()
        self.news = asyncio.Event()
        self._lines = window.api.stream(window.request("GET", target))
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(self._lines) as lines:
            async for line in lines:
                frame = json.loads(line)
                if frame["type"] == "live":
                    self.live.set()
                elif frame["type"] == "event":
                    self.seqs.append(frame["event"]["seq"])
                    self.news.set()

    async def up_to(self, seq: int) -> list[int]:
        while not self.seqs or self.seqs[-1] < seq:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)
        self._reading.cancel()
        await asyncio.wait((self._reading,))
        return self.seqs


class Story:
    """A task that somebody writes to, and how far it is."""

    def __init__(self, engine: TestEngine, seed: int) -> None:
        self._engine = engine
        self.rng = random.Random(seed)
        self.task = TaskId("")
        self.head = 0
        self.written = 0

    async def begin(self, window: Window) -> None:
        self.task = TaskId(str((await window.start(HOLD))["id"]))
        self.head = 0
        await self.write()

    async def write(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.written += 1
            state = await self._engine.desk.update(self.task, ANA, title=f"title {self.written}")
            self.head = max(self.head, state.seq)

    def cursor(self, after: int) -> str:
        line = self._engine.store.tail._line
        wanted = (self.task, after)
        return cursor_of(next(one for one in reversed(line) if (one.event.task, one.event.seq) == wanted))


@pytest.mark.req("3.6", "TI.3")
@pytest.mark.parametrize(
    ("path", "rounds"),
    [("/v1/tasks/{task}/events?after={after}&ticks=0", 1000), ("/v1/events?after={cursor}", 200)],
)
async def test_nothing_is_missed_or_doubled_wherever_somebody_writes(
    path: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "EVENTS_PAGE", 3)
    monkeypatch.setattr(stream_module, "PAGE", 3)
    point, tools = Struck(), Tools()
    async with TestEngine(tools.all(), store=StruckStore(point)) as engine:
        window, story = Window(engine), Story(engine, seed=7)
        for number in range(rounds):
            if number % 5 == 0:
                await story.begin(window)
            after = max(story.head - story.rng.randint(0, 8), 1)
            target = path.format(task=story.task, after=after, cursor=story.cursor(after))
            point.passed, point.at = 0, {story.rng.randint(1, 8), story.rng.randint(1, 8)}
            point.strike = story.write
            watcher = Seen(window, target)
            for _ in range(story.rng.randint(0, 12)):
                await asyncio.sleep(0)
            await story.write()
            await watcher.live.wait()
            point.strike = None
            await story.write()
            assert await watcher.up_to(story.head) == list(range(after + 1, story.head + 1)), f"round {number}"
        assert story.written > 2 * rounds
        tools.release.set()
