"""Group commit: a writer thread; units in, batches out. Knows no SQL.

The thread takes whatever is queued when the last flush ends, so a lone writer never waits for company and many share
one flush. There is no timer. A caller that is cancelled loses its answer, never its write.

While the disk flushes, the interpreter is free. So when more is queued, the answers of a batch are told as the next one
is about to be flushed: their tasks go on meanwhile. And when many come at once, half of them are written first, so that
somebody can.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from everstep.domain.errors import EngineClosed, Unavailable
from everstep.domain.histogram import Histogram

BATCH_UNITS_MAX: Final = 256
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
WAITING_UNITS_MAX: Final = 16_384
WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
HALVED_FROM_UNITS: Final = 32
"""So many at once are written in two halves."""
AGAIN_S: Final = 1.0


class Sized(Protocol):
    """All this file knows of a unit."""

    @property
    def size_bytes(self) -> int: ...


U = TypeVar("U", bound=Sized)
T_contra = TypeVar("T_contra", bound=Sized, contravariant=True)


class Writer(Protocol[T_contra]):
    """What the thread calls. Only the thread calls it."""

    def write(self, units: Sequence[T_contra], flushing: Callable[[], None]) -> Sequence[object]:
        """One transaction; an answer per unit, an exception standing for a refusal. Raises if nothing is durable.

        `flushing` is called, once or more often, before it waits for a disk or a server.
        """

    def idle(self) -> float | None:
        """Nothing is queued; in how many seconds to call again, None: when there is work."""

    def close(self) -> None:
        """Last call of the thread."""


class Sent(NamedTuple, Generic[U]):
    """Units of one caller, and where their answers go."""

    units: Sequence[U]
    size_bytes: int
    answer: "asyncio.Future[Sequence[object]] | Future[Sequence[object]]"


@dataclass(slots=True)
class Tally:
    """What group commit has done so far."""

    flushes: int = 0
    units: int = 0
    largest: int = 0
    seconds: Histogram = field(default_factory=Histogram)
    """How long flushes took."""


@dataclass(slots=True)
class GroupCommit(Generic[U]):
    """One writer, its thread and its queue. Used from one event loop; `submit_blocking` from any thread."""

    writer: Writer[U]
    tally: Tally = field(default_factory=Tally)
    _queue: SimpleQueue[Sequence[Sent[U]] | None] = field(default_factory=SimpleQueue)
    """What came together is handed over together; None: nothing comes any more."""
    _outbox: list[Sent[U]] = field(default_factory=list)
    _backlog: deque[Sent[U]] = field(default_factory=deque)
    """Handed over and in no batch yet; the thread's own."""
    _untold: tuple[list[Sent[U]], Sequence[object] | Exception] | None = None
    """The last batch and its answers, until somebody hears them."""
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _closed: bool = False
    _waiting_units: int = 0
    _waiting_bytes: int = 0

    def start(self) -> None:
        """Begin, on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="everstep-writer", daemon=True)
        self._thread.start()

    def submit(self, units: Sequence[U]) -> Awaitable[Sequence[object]]:
        """Answers once the units are durable. Raises what the writer raised, the first refusal, or that it is full."""
        if len(units) > BATCH_UNITS_MAX:
            return self._submit_parts(units)
        loop = self._loop
        if loop is None or self._closed:
            raise EngineClosed("the store is not open")
        size_bytes = units[0].size_bytes if len(units) == 1 else sum(unit.size_bytes for unit in units)
        if self._waiting_units >= WAITING_UNITS_MAX or self._waiting_bytes >= WAITING_BYTES_MAX:
            raise self._full()
        self._waiting_units += len(units)
        self._waiting_bytes += size_bytes
        answer: asyncio.Future[Sequence[object]] = loop.create_future()
        if not self._outbox:
            loop.call_soon(self._hand_over)
        self._outbox.append(Sent(units, size_bytes, answer))
        return answer

    @property
    def waiting(self) -> tuple[int, int]:
        """How many units wait, and how many may."""
        return self._waiting_units, WAITING_UNITS_MAX

    def _hand_over(self) -> None:
        """What this turn of the loop has brought, together: the thread is not woken in the middle of a burst."""
        handed, self._outbox = self._outbox, []
        self._queue.put(handed)

    async def _submit_parts(self, units: Sequence[U]) -> Sequence[object]:
        """More than one batch takes."""
        cuts = range(0, len(units), BATCH_UNITS_MAX)
        parts = await asyncio.gather(*(self.submit(units[at : at + BATCH_UNITS_MAX]) for at in cuts))
        return [answer for part in parts for answer in part]

    def submit_blocking(self, unit: U, timeout_s: float) -> object:
        """The same from another thread, for one unit."""
        if self._closed:
            raise EngineClosed("the store is not open")
        answer: Future[Sequence[object]] = Future()
        self._queue.put([Sent((unit,), unit.size_bytes, answer)])
        try:
            return answer.result(timeout_s)[0]
        except TimeoutError:
            raise Unavailable(f"the store did not answer within {timeout_s:g} s") from None

    async def stop(self) -> None:
        """Write what is queued, then end the thread; nothing is taken after."""
        if self._closed:
            return
        self._closed = True
        self._hand_over()
        self._queue.put(None)
        thread = self._thread
        if thread is not None:
            await asyncio.shield(asyncio.to_thread(thread.join))

    def poison(self) -> None:
        """In a forked child: there is no thread any more."""
        self._closed = True

    def _full(self) -> Unavailable:
        return Unavailable(
            f"{self._waiting_units} writes of {self._waiting_bytes} bytes wait for the store",
            code="overloaded",
            what_to_do="try again in a moment",
        )

    # --- in the thread ---

    def _work(self) -> None:
        wait_s: float | None = None
        last = False
        while not last or self._backlog:
            last = last or self._receive(wait_s)
            batch = self._next_batch()
            if batch:
                self._flush(batch)
            if self._untold is not None and not self._backlog and self._queue.empty():
                self._tell()
            at_rest = not last and not self._backlog and self._queue.empty()
            wait_s = self._rest() if at_rest else None
        self._tell()
        self.writer.close()
        self._refuse_the_rest()

    def _rest(self) -> float | None:
        """What the writer cannot do at rest it tries again; whoever writes next learns what is wrong."""
        try:
            return self.writer.idle()
        except Exception:  # noqa: BLE001 -- the thread must live
            return AGAIN_S

    def _receive(self, wait_s: float | None) -> bool:
        """Whatever is queued now, waiting for it only if there is nothing to do; whether it is the last."""
        with suppress(Empty):
            handed = self._queue.get(not self._backlog, wait_s)
            while handed is not None:
                self._backlog.extend(handed)
                handed = self._queue.get_nowait()
            return True
        return False

    def _next_batch(self) -> list[Sent[U]]:
        """As much of the backlog as a batch may hold; a half of it if otherwise nobody had anything to do."""
        batch: list[Sent[U]] = []
        units = size_bytes = 0
        halved = self._untold is None and len(self._backlog) >= HALVED_FROM_UNITS
        most = min(BATCH_UNITS_MAX, len(self._backlog) // 2) if halved else BATCH_UNITS_MAX
        while self._backlog:
            sent = self._backlog[0]
            units += len(sent.units)
            size_bytes += sent.size_bytes
            if batch and (units > most or size_bytes > BATCH_BYTES_MAX):
                break
            batch.append(self._backlog.popleft())
        return batch

    def _flush(self, batch: list[Sent[U]]) -> None:
        units = [unit for sent in batch for unit in sent.units]
        answers: Sequence[object] | Exception
        began = time.perf_counter()
        try:
            answers = self.writer.write(units, self._tell)
        except Exception as error:  # noqa: BLE001 -- whoever waits must learn it, and the thread must live
            answers = error
        tally = self.tally
        tally.flushes += 1
        tally.seconds.observe(time.perf_counter() - began)
        tally.units += len(units)
        tally.largest = max(tally.largest, len(units))
        if self._untold is not None:  # it did not come to a flush
            self._tell()
        self._untold = (batch, answers)

    def _tell(self) -> None:
        """Whoever was answered last hears of it."""
        if self._untold is not None:
            untold, self._untold = self._untold, None
            self._answer(*untold)

    def _answer(self, batch: list[Sent[U]], answers: Sequence[object] | Exception) -> None:
        """One wake-up of the loop for the whole batch; a loop that is gone has nobody who waits."""
        at = 0
        for_loop: list[tuple[Sent[U], Sequence[object] | Exception]] = []
        for sent in batch:
            mine = answers if isinstance(answers, Exception) else answers[at : at + len(sent.units)]
            at += len(sent.units)
            if isinstance(sent.answer, Future):
                _resolve(sent.answer, mine)
            else:
                for_loop.append((sent, mine))
        if for_loop:
            assert self._loop is not None
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake, for_loop)

    def _refuse_the_rest(self) -> None:
        rest: list[Sent[U]] = []
        with suppress(Empty):
            while True:
                rest.extend(self._queue.get_nowait() or ())
        if rest:
            self._answer(rest, EngineClosed("the store was closed"))

    # --- back on the loop ---

    def _wake(self, answered: list[tuple[Sent[U], Sequence[object] | Exception]]) -> None:
        for sent, mine in answered:
            self._waiting_units -= len(sent.units)
            self._waiting_bytes -= sent.size_bytes
            _resolve(sent.answer, mine)


def _resolve(
    answer: "asyncio.Future[Sequence[object]] | Future[Sequence[object]]", with_: Sequence[object] | Exception
) -> None:
    """One refused unit refuses all that its caller sent with it."""
    if answer.done():
        return None
    if isinstance(with_, Exception):
        return answer.set_exception(with_)
    for one in with_:
        if isinstance(one, Exception):
            return answer.set_exception(one)
    return answer.set_result(with_)
