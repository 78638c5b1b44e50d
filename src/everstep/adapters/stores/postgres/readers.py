"""Reading: a few connections, each used by one thread at a time. Never in the writer's or the loop's way."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import psycopg

from everstep.adapters.stores.postgres.connect import connect, translated
from everstep.adapters.stores.postgres.sql import question
from everstep.domain.errors import EngineClosed

T = TypeVar("T")

READERS_MAX: Final = 4
READ_MAX_S: Final = 10.0
LATE_S: Final = 2.0
"""The server itself ends what takes longer than that; an answer that is so late will not come."""


class PgReader:
    """One connection."""

    def __init__(self, url: str) -> None:
        self._connection = connect(url)

    def rows(
        self, name: str, values: Any = None, *, within_s: float | None = None, writes: bool = False
    ) -> list[tuple[Any, ...]]:
        """All rows of a named statement, in a transaction that has its patience in the same message."""
        patience_s = READ_MAX_S if within_s is None else within_s
        self._connection.answer_s = patience_s + LATE_S
        text = question(name, patience_s, writes=writes)
        cursor = self._connection.execute(text, values)
        rows: list[tuple[Any, ...]] = []
        more: bool | None = True
        while more:
            if cursor.description:
                rows = cursor.fetchall()
            more = cursor.nextset()
        return rows

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()


class PgReaders:
    """A bounded pool of threads and connections."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = ThreadPoolExecutor(READERS_MAX, thread_name_prefix="everstep-reader")
        self._free: list[PgReader] = []
        self._changed = threading.Lock()
        self._closed = False

    async def read(self, question: Callable[[PgReader], T]) -> T:
        """Ask in a thread of the pool."""
        if self._closed:
            raise EngineClosed("the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.ask, question)

    def ask(self, question: Callable[[PgReader], T]) -> T:
        """Ask in this thread. A connection that was cut meanwhile is no reason to fail: one more try on a new one."""
        with translated():
            try:
                with self._borrowed() as reader:
                    return question(reader)
            except psycopg.OperationalError:
                self._drop()
                with self._borrowed() as reader:
                    return question(reader)

    @contextmanager
    def _borrowed(self) -> Iterator[PgReader]:
        with self._changed:
            reader = self._free.pop() if self._free else None
        reader = reader or PgReader(self._url)
        kept = False
        try:
            yield reader
            kept = True
        finally:
            with self._changed:
                keep = kept and not self._closed
                if keep:
                    self._free.append(reader)
            if not keep:
                reader.close()

    def _drop(self) -> None:
        """What was cut once is cut for all."""
        with self._changed:
            dropped, self._free = self._free, []
        for reader in dropped:
            reader.close()

    def close(self) -> None:
        """No more reading."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._drop()
