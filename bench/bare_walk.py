"""What durable steps cost in this Python at the least: `python -m bench.bare_walk CELL FOLDER`.

The rules of the journal and nothing else: a task and its first event; an intent with its arguments, key and digests
before each call; a call of its own that can be cancelled and has a time limit; a result that is checked to be strict
JSON, copied and named by its digest; events in their real spelling, linked to the line before; a guarded update of the
task's row; outcome and next intent in one commit. No plan, no retries, no gates, no feed, no estimates, no history.
What an engine does beside this is what its share of the reference loses to it; what this loses is Python's.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from bench.bare_writer import Writer
from bench.workload import CELLS, STEPS, Meter, argument, measure
from everstep.adapters.entropy import SystemEntropy
from everstep.adapters.loops import run_process
from everstep.adapters.stores.journal import engine_actor
from everstep.domain import events as e
from everstep.domain.ids import Epoch, Instant, Seq, StepPath, TaskId, WorkerId, idempotency_key
from everstep.domain.plan import Effect
from everstep.domain.task import Lease, Proposal
from everstep.domain.values import Sealed
from everstep.wire.event import Pen
from everstep.wire.values import Codec

SCHEMA: Final = """
CREATE TABLE tasks (num INTEGER PRIMARY KEY, id TEXT NOT NULL, done INTEGER NOT NULL, last_seq INTEGER NOT NULL) STRICT;
CREATE TABLE events (
    place INTEGER PRIMARY KEY, task INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, step TEXT,
    body TEXT NOT NULL, link BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_of_task ON events (task, seq);
"""
TIMEOUT_S: Final = 60.0
ME: Final = WorkerId("w_00000000000000000000000000")
CODEC: Final = Codec()


class Unit(NamedTuple):
    """One commit of a task: an outcome, if there is one, and the intent that follows, if there is one."""

    num: int
    lease: Lease
    last_seq: int
    done: int
    outcome: e.Draft | None
    proposal: Proposal | None


class Ledger:
    """What the writer's thread does with a batch."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path))
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute(SCHEMA)
        self._cursor = self._db.cursor()
        self._heads: dict[int, tuple[int, bytes]] = {}

    def commit(self, units: list[Any]) -> None:
        """Rows first, then one flush."""
        born: list[tuple[Any, ...]] = []
        rows: list[tuple[Any, ...]] = []
        touched: list[tuple[Any, ...]] = []
        for unit in units:
            self._write(unit, born, rows, touched)
        self._cursor.execute("BEGIN IMMEDIATE")
        self._cursor.executemany("INSERT INTO tasks VALUES (?, ?, ?, ?)", born)
        self._cursor.executemany(
            "INSERT INTO events (task, seq, type, step, body, link) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
        before = self._db.total_changes()
        self._cursor.executemany("UPDATE tasks SET done = ?, last_seq = ? WHERE num = ? AND last_seq = ?", touched)
        assert self._db.total_changes() - before == len(touched)
        self._cursor.execute("COMMIT")

    def _write(
        self,
        unit: Unit,
        born: list[tuple[Any, ...]],
        rows: list[tuple[Any, ...]],
        touched: list[tuple[Any, ...]],
    ) -> None:
        num, lease, seq, done, outcome, proposal = unit
        known, link = self._heads.get(num, (0, b""))
        assert known == seq
        pen = Pen(lease.task, Instant(1_800_000_000_000), 1, engine_actor(ME))
        if outcome is not None:
            seq += 1
            encoded = pen.write(Seq(seq), outcome)
            link = sha256(link + encoded).digest()
            rows.append((num, seq, "step.completed", outcome.step, encoded.decode(), link))
        if proposal is not None:
            seq += 1
            encoded = pen.write_intent(Seq(seq), lease, proposal)
            link = sha256(link + encoded).digest()
            rows.append((num, seq, "attempt.started", proposal.step, encoded.decode(), link))
        if unit.last_seq == 0:
            born.append((num, lease.task, done, seq))
        else:
            touched.append((done, seq, num, unit.last_seq))
        self._heads[num] = (seq, link)

    def close(self) -> None:
        self._db.close()


async def carry(num: int, writer: Writer, meter: Meter, entropy: SystemEntropy) -> None:
    """One task of W, as plainly as it can be written."""
    loop = asyncio.get_running_loop()
    task = TaskId(entropy.new_id("t"))
    lease = Lease(task=task, epoch=Epoch(1), worker=ME)
    seq, outcome = 0, None
    for number in range(STEPS + 1):
        proposal = _proposal(task, number) if number < STEPS else None
        await writer.put(Unit(num, lease, seq, number, outcome, proposal))  # type: ignore[arg-type]
        seq += (outcome is not None) + (proposal is not None)
        if proposal is None:
            return
        calling = loop.create_task(_call(meter, task, json.loads(proposal.input.raw or b"")))
        timer = loop.call_later(TIMEOUT_S, calling.cancel)
        output = await calling
        timer.cancel()
        body = e.StepCompleted(1, output, None, "tool", "bench.work", 0.001, 0.001, None, None)
        outcome = e.Draft(body, proposal.step)


def _proposal(task: TaskId, number: int) -> Proposal:
    step = StepPath(f"s{number}")
    key = idempotency_key(task, step, 0)
    return Proposal(step, 1, "bench.work", "1", Effect.IDEMPOTENT, key, _argument(number))


def _argument(number: int, kept: dict[int, Sealed] = {}) -> Sealed:  # noqa: B006 -- sealed once, as an engine does
    if number not in kept:
        kept[number] = CODEC.seal({"request": argument(number)})
    return kept[number]


async def _call(meter: Meter, task: TaskId, arguments: dict[str, Any]) -> Sealed:
    return CODEC.seal_copy(meter.work(task, arguments["request"]["step"]), untrusted=True)


@contextmanager
def on_a_file(path: Path) -> Iterator[Any]:
    with closing(Ledger(path)) as ledger:
        yield ledger.commit


async def main(cell: str, folder: Path) -> None:
    """One cell, as JSON."""
    entropy, meter = SystemEntropy(), Meter()
    writer = Writer(lambda: on_a_file(folder / "walk.db"))
    try:
        figures = await measure(
            CELLS[cell], lambda task: carry(task + 2, writer, meter, entropy), meter, lambda: writer.commits
        )
    finally:
        writer.close()
    print(json.dumps(figures.as_json()))


if __name__ == "__main__":
    run_process(main(sys.argv[1], Path(sys.argv[2])))
