"""The reference: what our journal would cost without an engine around it. It is the 1.0 of every floor.

asyncio, one writer thread, group commit without a timer, the standard library's `sqlite3` and `json`, WAL with
`synchronous=FULL`; outcome i and intent i+1 are two rows of one commit, appended under an integer key with one narrow
unique index (task number, seq). Anyone can repeat it: `python -m bench.bare_writer CELL FOLDER`.
"""

import asyncio
import json
import queue
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

from bench.workload import CELLS, STEPS, Meter, argument, measure

Row: TypeAlias = tuple[int, int, str, str]
Unit: TypeAlias = tuple[tuple[Row, ...], asyncio.Future[None]]
Commit: TypeAlias = Callable[[list[Row]], None]
"""Makes rows durable, in one transaction."""

SCHEMA = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, task INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL
);
CREATE UNIQUE INDEX events_of_task ON events (task, seq);
"""
INSERT = "INSERT INTO events (task, seq, type, body) VALUES (?, ?, ?, ?)"
BATCH_MAX = 5000


class Writer:
    """A thread that owns the connection; whatever has queued up during the last flush goes into the next commit."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Commit]]) -> None:
        self.commits = 0
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._units: queue.SimpleQueue[Unit | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def put(self, *rows: Row) -> asyncio.Future[None]:
        """Resolves when the rows are durable."""
        future = self._loop.create_future()
        self._units.put((rows, future))
        return future

    def close(self) -> None:
        self._units.put(None)
        self._thread.join()

    def _write(self) -> None:
        with self._opened() as commit:
            while (first := self._units.get()) is not None:
                batch = [first, *self._queued()]
                commit([row for rows, _ in batch for row in rows])
                self.commits += 1
                self._loop.call_soon_threadsafe(wake, [future for _, future in batch])

    def _queued(self) -> list[Unit]:
        units: list[Unit] = []
        while len(units) < BATCH_MAX:
            try:
                unit = self._units.get_nowait()
            except queue.Empty:
                break
            if unit is None:
                self._units.put(None)
                break
            units.append(unit)
        return units


@contextmanager
def on_a_file(path: Path) -> Iterator[Commit]:
    """SQLite, as durable as our journal."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(SCHEMA)

        def commit(rows: list[Row]) -> None:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(INSERT, rows)
            db.execute("COMMIT")

        yield commit


def wake(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


async def carry(task: int, writer: Writer, meter: Meter) -> None:
    """One task of W: the intent is durable before each call, the outcome before the next."""
    await writer.put((task, 0, "intent", json.dumps(argument(0))))
    for step in range(STEPS):
        result = await call(meter, task, step)
        outcome = (task, 2 * step + 1, "outcome", json.dumps(result))
        if step + 1 < STEPS:
            await writer.put(outcome, (task, 2 * step + 2, "intent", json.dumps(argument(step + 1))))
        else:
            await writer.put(outcome)


async def call(meter: Meter, task: int, step: int) -> dict[str, object]:
    """The asynchronous tool."""
    return meter.work(task, step)


async def main(cell: str, opened: Callable[[], AbstractContextManager[Commit]]) -> None:
    """One cell, as JSON."""
    writer, meter = Writer(opened), Meter()
    try:
        figures = await measure(CELLS[cell], lambda task: carry(task, writer, meter), meter, lambda: writer.commits)
    finally:
        writer.close()
    print(json.dumps(figures.as_json()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], lambda: on_a_file(Path(sys.argv[2]) / "bare.db")))
