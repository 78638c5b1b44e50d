"""Group commit: units in, batches out; flushes are counted, never timed."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from everstep.adapters.stores import groupcommit
from everstep.adapters.stores.groupcommit import BATCH_UNITS_MAX, GroupCommit
from everstep.domain.errors import Conflict, EngineClosed, StoreFull, Unavailable

ODD = -1
"""The unit that the fake writer refuses."""


@dataclass(frozen=True)
class Unit:
    name: int
    size_bytes: int = 1


@dataclass
class FakeWriter:
    """Holds every flush until the test lets it go."""

    batches: list[list[int]] = field(default_factory=list)
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    began: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    flushes: bool = True
    """Whether it says when it begins to wait."""
    refuse: Exception | None = None
    waits: list[float | None] = field(default_factory=list)
    idled: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    breaks: list[Exception] = field(default_factory=list)
    closed: bool = False

    def write(self, units: Sequence[Unit], flushing: Callable[[], None]) -> Sequence[object]:
        self.batches.append([unit.name for unit in units])
        if self.flushes:
            flushing()
        self.began.release()
        self.gate.acquire()
        if self.refuse is not None:
            raise self.refuse
        return [Conflict("odd") if unit.name == ODD else unit.name * 10 for unit in units]

    def idle(self) -> float | None:
        self.idled.release()
        if self.breaks:
            raise self.breaks.pop()
        return self.waits.pop(0) if self.waits else None

    def close(self) -> None:
        self.closed = True

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.began.acquire, timeout=10)


@pytest.fixture
async def writer() -> FakeWriter:
    return FakeWriter()


def started(writer: FakeWriter) -> GroupCommit[Unit]:
    group: GroupCommit[Unit] = GroupCommit(writer)
    group.start()
    return group


async def test_what_queues_during_a_flush_shares_the_next(writer: FakeWriter) -> None:
    group = started(writer)
    first = asyncio.ensure_future(group.submit([Unit(0)]))
    await writer.has_begun()
    rest = [asyncio.ensure_future(group.submit([Unit(number)])) for number in range(1, 101)]
    await asyncio.sleep(0)
    writer.gate.release(2)
    assert await first == [0]
    assert [list(await one) for one in rest] == [[number * 10] for number in range(1, 101)]
    assert [len(batch) for batch in writer.batches] == [1, 100]
    assert (group.tally.flushes, group.tally.units, group.tally.largest) == (2, 101, 100)
    await group.stop()
    assert writer.closed


async def test_who_was_answered_goes_on_while_the_next_batch_is_flushed(writer: FakeWriter) -> None:
    group = started(writer)
    first = asyncio.ensure_future(group.submit([Unit(0)]))
    await writer.has_begun()
    second = asyncio.ensure_future(group.submit([Unit(1)]))
    await asyncio.sleep(0)
    writer.gate.release()
    await writer.has_begun()
    assert await first == [0]
    assert not second.done()
    writer.gate.release()
    assert await second == [10]
    await group.stop()


async def test_who_was_answered_waits_no_longer_than_for_the_next_batch_whatever_becomes_of_it(
    writer: FakeWriter,
) -> None:
    writer.flushes = False
    group = started(writer)
    first = asyncio.ensure_future(group.submit([Unit(0)]))
    await writer.has_begun()
    second = asyncio.ensure_future(group.submit([Unit(1)]))
    await asyncio.sleep(0)
    writer.gate.release()
    await writer.has_begun()
    writer.refuse = StoreFull("full")
    writer.gate.release()
    assert await first == [0]
    with pytest.raises(StoreFull):
        await second
    await group.stop()


async def test_of_many_at_once_half_are_written_first(writer: FakeWriter) -> None:
    """While the others are flushed their tasks go on; without that, either the disk or the interpreter would rest."""
    group = started(writer)
    at_once = [asyncio.ensure_future(group.submit([Unit(number)])) for number in range(1, 101)]
    await writer.has_begun()
    writer.gate.release()
    await writer.has_begun()
    early = [list(await one) for one in at_once[:50]]
    assert not any(one.done() for one in at_once[50:])
    writer.gate.release()
    assert [*early, *[list(await one) for one in at_once[50:]]] == [[number * 10] for number in range(1, 101)]
    assert [len(batch) for batch in writer.batches] == [50, 50]
    few = [asyncio.ensure_future(group.submit([Unit(number)])) for number in range(groupcommit.HALVED_FROM_UNITS - 1)]
    writer.gate.release()
    await asyncio.gather(*few)
    assert len(writer.batches) == 3
    await group.stop()


@pytest.mark.parametrize("size_bytes", [1, groupcommit.BATCH_BYTES_MAX // 4])
async def test_a_batch_is_bounded(writer: FakeWriter, size_bytes: int) -> None:
    group = started(writer)
    first = asyncio.ensure_future(group.submit([Unit(0)]))
    await writer.has_begun()
    rest = [asyncio.ensure_future(group.submit([Unit(number, size_bytes)])) for number in range(14, 14 + 12)]
    many = asyncio.ensure_future(group.submit([Unit(number, 0) for number in range(100, 100 + 2 * BATCH_UNITS_MAX)]))
    await asyncio.sleep(0)
    writer.gate.release(100)
    answers = await many
    await asyncio.gather(first, *rest)
    assert list(answers) == [number * 10 for number in range(100, 100 + 2 * BATCH_UNITS_MAX)]
    assert max(len(batch) for batch in writer.batches) <= BATCH_UNITS_MAX
    if size_bytes > 1:
        assert [len(batch) for batch in writer.batches[1:4]] == [4, 4, 4]
    assert [name for batch in writer.batches for name in batch] == [
        0,
        *range(14, 26),
        *range(100, 100 + 2 * BATCH_UNITS_MAX),
    ]
    await group.stop()


async def test_a_cancelled_caller_loses_its_answer_not_its_write(writer: FakeWriter) -> None:
    group = started(writer)
    caller = asyncio.ensure_future(group.submit([Unit(1)]))
    await writer.has_begun()
    queued = asyncio.ensure_future(group.submit([Unit(2)]))
    await asyncio.sleep(0)
    for task in (caller, queued):
        task.cancel()
    writer.gate.release(10)
    await asyncio.gather(caller, queued, return_exceptions=True)
    assert caller.cancelled()
    assert queued.cancelled()
    assert await group.submit([Unit(3)]) == [30]
    assert [name for batch in writer.batches for name in batch] == [1, 2, 3]
    await group.stop()


async def test_one_wake_up_per_batch(writer: FakeWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    group = started(writer)
    loop = asyncio.get_running_loop()
    wakes: list[object] = []
    real = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *args: object) -> asyncio.Handle:
        wakes.append(callback)
        return real(callback, *args)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    first = asyncio.ensure_future(group.submit([Unit(0)]))
    await writer.has_begun()
    rest = [asyncio.ensure_future(group.submit([Unit(number)])) for number in range(14, 64)]
    await asyncio.sleep(0)
    wakes.clear()
    writer.gate.release(2)
    await asyncio.gather(first, *rest)
    assert len(wakes) == 2
    await group.stop()


async def test_a_refusal_is_its_callers_alone(writer: FakeWriter) -> None:
    group = started(writer)
    writer.gate.release(10)
    good, bad = await asyncio.gather(group.submit([Unit(1)]), group.submit([Unit(ODD)]), return_exceptions=True)
    assert (good, type(bad)) == ([10], Conflict)
    await group.stop()


async def test_a_failed_flush_is_everybodys(writer: FakeWriter) -> None:
    group = started(writer)
    writer.refuse = StoreFull("full")
    writer.gate.release(10)
    outcomes = await asyncio.gather(*(group.submit([Unit(n)]) for n in range(3)), return_exceptions=True)
    assert {type(one) for one in outcomes} == {StoreFull}
    writer.refuse = None
    assert await group.submit([Unit(4)]) == [40]
    await group.stop()


async def test_the_queue_is_bounded(writer: FakeWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groupcommit, "WAITING_UNITS_MAX", 3)
    group = started(writer)
    waiting = [asyncio.ensure_future(group.submit([Unit(number)])) for number in range(3)]
    await writer.has_begun()
    with pytest.raises(Unavailable) as refused:
        await group.submit([Unit(4)])
    assert refused.value.code == "overloaded"
    writer.gate.release(10)
    await asyncio.gather(*waiting)
    assert await group.submit([Unit(4)]) == [40]
    await group.stop()


async def test_stopping_writes_what_is_queued(writer: FakeWriter) -> None:
    group = started(writer)
    queued = [asyncio.ensure_future(group.submit([Unit(number)])) for number in range(3)]
    await writer.has_begun()
    stopping = asyncio.create_task(group.stop())
    await asyncio.sleep(0)
    with pytest.raises(EngineClosed):
        await group.submit([Unit(9)])
    with pytest.raises(EngineClosed):
        group.submit_blocking(Unit(9), 1)
    writer.gate.release(10)
    await stopping
    assert [list(await one) for one in queued] == [[0], [10], [20]]
    await group.stop()


async def test_who_comes_after_the_end_keeps_nobody_from_the_answer(writer: FakeWriter) -> None:
    """Another thread that had looked before the end was said."""
    group = started(writer)
    first = asyncio.ensure_future(group.submit([Unit(0)]))
    await writer.has_begun()
    group._queue.put(None)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(group.submit_blocking, Unit(7), 30)
        while group._queue.qsize() < 2:  # noqa: ASYNC110 -- another thread fills it
            await asyncio.sleep(0.001)
        writer.gate.release()
        assert await asyncio.wait_for(first, 30) == [0]
        with pytest.raises(EngineClosed):
            await asyncio.wrap_future(late)


async def test_another_thread_may_wait_for_its_unit(writer: FakeWriter) -> None:
    group = started(writer)
    first = asyncio.ensure_future(group.submit([Unit(0), Unit(1)]))
    await writer.has_begun()
    with ThreadPoolExecutor(1) as pool:
        blocking = pool.submit(group.submit_blocking, Unit(7), 10)
        late = asyncio.ensure_future(group.submit([Unit(2)]))
        await asyncio.sleep(0)
        writer.gate.release(10)
        assert await asyncio.wrap_future(blocking) == 70
    assert [list(await one) for one in (first, late)] == [[0, 10], [20]]
    await group.stop()


async def test_another_thread_does_not_wait_for_ever(writer: FakeWriter) -> None:
    group = started(writer)
    with pytest.raises(Unavailable):
        await asyncio.to_thread(group.submit_blocking, Unit(7), 0.001)
    writer.gate.release()
    await group.stop()


async def test_an_idle_writer_is_called_again_when_it_asks(writer: FakeWriter) -> None:
    writer.waits = [0.001, 0.001, None]
    group = started(writer)
    writer.gate.release(1)
    await group.submit([Unit(1)])
    for _ in range(3):
        assert await asyncio.to_thread(writer.idled.acquire, timeout=10)
    await group.stop()


async def test_a_writer_that_breaks_at_rest_still_writes(writer: FakeWriter) -> None:
    writer.breaks = [OSError("no space left")]
    group = started(writer)
    writer.gate.release(2)
    await group.submit([Unit(1)])
    assert await asyncio.to_thread(writer.idled.acquire, timeout=60)
    assert await asyncio.wait_for(group.submit([Unit(2)]), 60) == [20]
    await group.stop()
