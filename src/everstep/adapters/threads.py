"""Threads for calls that block: made when needed, given back, at most so many.

Not `asyncio.to_thread`: its threads are joined when the process ends, so one hung tool would keep a finished command
from returning. These are daemons. A call that was given up goes on in its thread until it ends by itself; that slot
is taken until then.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

Answer: TypeAlias = "asyncio.Future[tuple[object, BaseException | None]]"


@dataclass(slots=True)
class Errand:
    """Work on its way to a thread; `on_end` is called on the loop if it ends when nobody waits any more."""

    context: contextvars.Context
    work: Callable[[], object]
    answer: Answer
    on_end: Callable[[], None] | None = None
    over: bool = False
    """Its end is known on the loop."""


THREADS_MAX: Final = 64


class Threads:
    """A few threads that serve one event loop at a time."""

    def __init__(self, limit: int = THREADS_MAX) -> None:
        self._limit = limit
        self._errands: SimpleQueue[Errand | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0
        self._closed = False

    async def call(self, work: Callable[[], T], outlives: Callable[[], Callable[[], None]] | None = None) -> T:
        """What `work` returns or raises. Context variables go along; cancelling gives up waiting, not the work.

        Then `outlives` is called, and what it returns when the work has ended.
        """
        assert not self._closed, "closed with its engine"
        answer: Answer = asyncio.get_running_loop().create_future()
        errand = Errand(contextvars.copy_context(), work, answer)
        self._errands.put(errand)
        if not self._idle.acquire(blocking=False) and self._count < self._limit:
            self._count += 1
            threading.Thread(target=self._serve, name=f"everstep-call-{self._count}", daemon=True).start()
        try:
            result, error = await answer
        except asyncio.CancelledError:
            if outlives is not None and not errand.over:
                errand.on_end = outlives()
            raise
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # what `work` returned

    def close(self) -> None:
        """Idle threads end now, busy ones after their call; nothing waits for them."""
        self._closed = True
        for _ in range(self._count):
            self._errands.put(None)

    def _serve(self) -> None:
        while (errand := self._errands.get()) is not None:
            given_up = errand.answer.cancelled()  # before it began: never called
            self._finish(errand, *((None, None) if given_up else _outcome(errand.context, errand.work)))
            del errand  # an idle thread keeps nothing alive
            self._idle.release()

    def _finish(self, errand: Errand, result: object, error: BaseException | None) -> None:
        def deliver() -> None:
            errand.over = True
            if not errand.answer.done():
                errand.answer.set_result((result, error))
            elif errand.on_end is not None:
                errand.on_end()

        loop = errand.answer.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver)


def _outcome(context: contextvars.Context, work: Callable[[], object]) -> tuple[object, BaseException | None]:
    try:
        return context.run(work), None
    except BaseException as error:  # noqa: BLE001 -- raised again where the call is awaited
        return None, error
