"""Reading: a few read-only connections, each used by one thread at a time. Never in the writer's or the loop's way."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from everstep.adapters.stores.forks import bury
from everstep.adapters.stores.sqlite.connect import connect, translated
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.errors import EngineClosed, StoreError

T = TypeVar("T")

READERS_MAX: Final = 3
READ_MAX_S: Final = 5.0
"""A longer one would keep the WAL from being reset."""
_STEPS_BETWEEN_LOOKS: Final = 50_000


class Reader:
    """One connection, and how long it may take."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path, write=False)
        self._until = 0.0
        self._connection.set_progress_handler(self._late, _STEPS_BETWEEN_LOOKS)

    def rows(self, name: str, values: Any = None, *, within_s: float | None = None) -> list[tuple[Any, ...]]:
        """All rows of a named statement; what they hold is the statement's business."""
        self._until = time.monotonic() + (READ_MAX_S if within_s is None else within_s)
        return list(self._connection.execute(sql(name), values))

    def give_up(self) -> None:
        """From another thread: give up what is being read."""
        self._until = 0.0
        with suppress(apsw.Error):
            self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def poison(self) -> None:
        bury(self._connection)

    def _late(self) -> bool:
        return time.monotonic() > self._until


class Readers:
    """A bounded pool of threads and connections."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(READERS_MAX, thread_name_prefix="everstep-reader")
        self._free: list[Reader] = []
        self._used: set[Reader] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._trouble: StoreError | None = None

    async def read(self, question: Callable[[Reader], T]) -> T:
        """Ask in a thread of the pool."""
        if self._closed:
            raise EngineClosed("the store is not open")
        if self._trouble is not None:
            raise type(self._trouble)(self._trouble.message, code=self._trouble.code)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask, question)

    def _ask(self, question: Callable[[Reader], T]) -> T:
        with translated(), self._borrowed() as reader:
            return question(reader)

    @contextmanager
    def _borrowed(self) -> Iterator[Reader]:
        with self._changed:
            reader = self._free.pop() if self._free else Reader(self._path)
            self._used.add(reader)
        kept = False
        try:
            yield reader
            kept = True
        finally:
            with self._changed:
                self._used.discard(reader)
                if kept and not self._closed:
                    self._free.append(reader)
                else:
                    reader.close()
                self._changed.notify_all()

    def halt(self, trouble: StoreError | None) -> None:
        """The disk has failed: close every connection and read nothing until it is well again (None)."""
        self._trouble = trouble
        if trouble is None:
            return
        with self._changed:
            for reader in self._used:
                reader.give_up()
            self._changed.wait_for(lambda: not self._used, timeout=READ_MAX_S)
            while self._free:
                self._free.pop().close()

    def poison(self) -> None:
        """In a forked child: the connections are the parent's."""
        self._closed = True
        for reader in (*self._free, *self._used):
            reader.poison()

    def close(self) -> None:
        """No more reading."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        while self._free:
            self._free.pop().close()
