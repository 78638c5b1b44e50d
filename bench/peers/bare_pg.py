"""The reference on PostgreSQL: `python -m bench.peers.bare_pg CELL URL`.

As `bench.bare_writer`, on one connection: whatever has queued up during the last commit goes into the next one, as one
`INSERT` of outcome i and intent i+1 of every task.
"""

import asyncio
import json
import queue
import sys
import threading

import psycopg

from bench.bare_writer import BATCH_MAX, Row, Unit, call, wake
from bench.workload import CELLS, STEPS, Meter, argument, measure

SCHEMA = """
CREATE TABLE bare (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task bigint NOT NULL, seq bigint NOT NULL, type text NOT NULL,
    body text NOT NULL
);
CREATE UNIQUE INDEX bare_of_task ON bare (task, seq);
"""
INSERT = """
INSERT INTO bare (task, seq, type, body) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
"""


class Writer:
    """A thread that owns the connection."""

    def __init__(self, url: str) -> None:
        self.commits = 0
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(SCHEMA)
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
        self._connection.close()

    def _write(self) -> None:
        while (first := self._units.get()) is not None:
            batch = [first]
            while len(batch) < BATCH_MAX and not self._units.empty():
                unit = self._units.get()
                if unit is None:
                    self._units.put(None)
                    break
                batch.append(unit)
            columns = zip(*(row for rows, _ in batch for row in rows), strict=True)
            self._connection.execute(INSERT, [list(column) for column in columns])
            self.commits += 1
            self._loop.call_soon_threadsafe(wake, [future for _, future in batch])


async def carry(task: int, writer: Writer, meter: Meter) -> None:
    """One task of W."""
    await writer.put((task, 0, "intent", json.dumps(argument(0))))
    for step in range(STEPS):
        result = await call(meter, task, step)
        outcome = (task, 2 * step + 1, "outcome", json.dumps(result))
        following = (task, 2 * step + 2, "intent", json.dumps(argument(step + 1)))
        await writer.put(*((outcome, following) if step + 1 < STEPS else (outcome,)))


async def main(cell: str, url: str) -> None:
    writer, meter = Writer(url), Meter()
    try:
        figures = await measure(CELLS[cell], lambda task: carry(task, writer, meter), meter, lambda: writer.commits)
    finally:
        writer.close()
    print(json.dumps(figures.as_json()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
