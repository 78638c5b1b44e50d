"""The power goes out: files are rebuilt as a disk could have left them, from a record of every write and sync.

    python -m tests.fault.power                          5,000 states of both profiles, into the results
    python -m tests.fault.power --states 50 --seed 7     so many of one recording, told as one line

A VFS beneath SQLite writes down what is written, cut off and synced, and when somebody was told of an event. A state
is a moment of that record: what a file's last sync covers is there; of what came later each write is there, torn at a
sector, or missing, in any order. A file whose folder was not synced since may be missing. Every state is opened and
judged: with the profile `power` all that anybody was told is there, with `process` only the end of the story may miss.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from everstep import Engine, Plan
from everstep.adapters.stores.sqlite import connect, ledger
from everstep.errors import EverstepError
from everstep.torture.checker import Bounds, check, judge
from everstep.torture.history import Frame, Logs, read_journal
from everstep.torture.results import Line, Results, verdict
from everstep.torture.trial import BOUNDS
from everstep.torture.workload import Workload
from everstep.torture.world import EffectLog, trial_tools

SECTOR = 512
KEPT, TORN = 0.4, 0.2
BROKEN_OFF = Bounds(max_recoveries=BOUNDS.max_recoveries)
"""Nothing has to be finished yet."""
STATES = 500
RECORDINGS = {"power": 7, "process": 3}
"""So many of each profile, and so many states of each recording: 5,000 in all."""
REOPENED = 25
"""Every so many states the engine itself carries on from one."""
EARLY = 60
"""Operations in which the file is made: few, so they are chosen more often."""
FIRST = 15
"""Operations that are over before the file is a store: the engine carries on from all of these states."""
STORE = "store.db"
SWIFT = "/dev/shm" if Path("/dev/shm").is_dir() else None


class Op(NamedTuple):
    """One line of the record."""

    what: str
    file: str = ""
    at: int = 0
    data: bytes = b""
    task: str = ""
    type: str = ""


@dataclass
class Record:
    """Everything that happened to the files, in order."""

    ops: list[Op] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, op: Op) -> None:
        with self.lock:
            self.ops.append(op)


class Watched(apsw.VFS):
    """The system's own, with somebody who writes everything down."""

    def __init__(self, record: Record) -> None:
        self.record = record
        super().__init__("watched", "unix")

    def xOpen(self, name: Any, flags: list[int]) -> "WatchedFile":
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        file = os.path.basename(path or "")  # noqa: PTH119
        new = bool(path) and not (os.path.exists(path) and os.path.getsize(path))  # noqa: PTH110, PTH202
        opened = WatchedFile(name, flags, file, self.record)
        opened.new = new
        if new:
            self.record.add(Op("create", file))
        return opened

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        self.record.add(Op("unlink", os.path.basename(name)))  # noqa: PTH119
        if syncdir:
            self.record.add(Op("sync folder"))


class WatchedFile(apsw.VFSFile):
    """One file of it."""

    def __init__(self, name: Any, flags: list[int], file: str, record: Record) -> None:
        self.file = file
        self.record = record
        self.new = False
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.record.add(Op("write", self.file, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self.record.add(Op("truncate", self.file, size))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.record.add(Op("sync", self.file))
        if self.new and self.file.endswith(("-wal", "-journal")):  # of a new one SQLite syncs the folder, too
            self.record.add(Op("sync folder"))
            self.new = False


class Library:
    """`apsw`, with connections that write opened through the watched VFS."""

    def __getattr__(self, name: str) -> Any:
        return getattr(apsw, name)

    def Connection(self, path: str, flags: int) -> apsw.Connection:
        return apsw.Connection(path, flags=flags, vfs="watched" if flags & apsw.SQLITE_OPEN_READWRITE else None)


@contextlib.contextmanager
def watched(record: Record) -> Iterator[None]:
    """The connection that writes, and `fsync` of folders, written down."""
    vfs, plain = Watched(record), os.fsync
    setattr(connect, "apsw", Library())  # noqa: B010 -- a name that the module keeps to itself

    def fsync(descriptor: int) -> None:
        plain(descriptor)
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112
            record.add(Op("sync folder"))

    os.fsync = fsync  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync = plain
        setattr(connect, "apsw", apsw)  # noqa: B010
        vfs.unregister()


async def story(folder: Path, durability: str, seed: int, record: Record) -> None:
    """A few tasks with pauses, through checkpoints; whoever watches them writes down what they are told."""
    workload = Workload(steps=6, seed=seed, call_s=0.0)
    log = EffectLog(folder / "effects.jsonl", lambda *_: True)
    config: dict[str, Any] = {"durability": durability, "engine": {"heartbeat": "100ms"}}
    async with Engine(folder / STORE, tools=trial_tools(log, workload), config=config) as engine:
        plan = Plan.from_dict(workload.plan)
        tasks = [await engine.start(plan, {"start": number}, key=f"t{number}") for number in range(4)]

        async def listen(task: Any) -> None:
            async for event in task.events():
                record.add(Op("told", at=event.seq, task=task.id, type=event.type))

        listening = [asyncio.create_task(listen(task)) for task in tasks]
        for task in tasks[:2]:
            with contextlib.suppress(Exception):
                await task.pause()
                await task.resume()
        await asyncio.gather(*listening)


def recorded(durability: str, seed: int) -> Record:
    """One undisturbed story, from an empty folder to its end."""
    ledger.WAL_BYTES_MAX, ledger.WAL_LOOK_EVERY = 30_000, 4  # type: ignore[misc]
    record = Record()
    with tempfile.TemporaryDirectory(prefix="es-", dir=SWIFT) as folder, watched(record):
        asyncio.run(story(Path(folder), durability, seed, record))
    return record


def state(record: Record, moment: int, chance: random.Random) -> dict[str, bytearray]:
    """The files as a disk could have left them, if the power went out at this moment."""
    before = record.ops[:moment]
    synced = {op.file: place for place, op in enumerate(before) if op.what == "sync"}
    folder = max((place for place, op in enumerate(before) if op.what == "sync folder"), default=-1)
    files: dict[str, bytearray] = {}
    missing: set[str] = set()
    for place, op in enumerate(before):
        if op.what == "create":
            files.setdefault(op.file, bytearray())
            if place > folder and chance.random() < 0.5:
                missing.add(op.file)
        elif op.what == "unlink" and (place < folder or chance.random() < 0.5):
            files.pop(op.file, None)
        elif op.what in ("write", "truncate") and op.file in files:
            sure = place < synced.get(op.file, -1)
            _apply(files[op.file], op, 1.0 if sure else KEPT, chance)
    return {name: content for name, content in files.items() if name not in missing and not name.endswith("-shm")}


def _apply(content: bytearray, op: Op, kept: float, chance: random.Random) -> None:
    draw = chance.random()
    if op.what == "truncate":
        if draw < kept:
            del content[op.at :]
            content.extend(bytes(op.at - len(content)))
        return
    data = op.data
    if kept < 1.0 and kept <= draw < kept + TORN:
        data = data[: SECTOR * chance.randint(0, len(data) // SECTOR)]
    elif draw >= kept:
        return
    if len(content) < op.at + len(data):
        content.extend(bytes(op.at + len(data) - len(content)))
    content[op.at : op.at + len(data)] = data


def judged(files: dict[str, bytearray], record: Record, moment: int, *, all_told: bool) -> list[str]:
    """Put the files there, open them, and hold them against what was told."""
    told = [
        Frame(subscriber="s", task=op.task, seq=op.at, type=op.type) for op in record.ops[:moment] if op.what == "told"
    ]
    with tempfile.TemporaryDirectory(prefix="es-", dir=SWIFT) as base:
        for name, content in files.items():
            (Path(base) / name).write_bytes(content)
        store = Path(base) / STORE
        if not store.exists() or not _has_tables(store):
            return ["C1: the store is gone, and somebody was told of it"] if told and all_told else []
        journal = read_journal(store)
        frames = sorted(told, key=lambda frame: (frame.task, frame.seq)) if all_told else []
        wrong = [f"{one.check}: {one.what}" for one in judge(journal, Logs(streams=tuple(frames)), BROKEN_OFF)]
        places = sorted(event.place for events in journal.events.values() for event in events)
        if places != [*range(1, len(places) + 1)]:
            wrong.append("C6: what is missing is not the end of the story")
    return wrong


def _has_tables(store: Path) -> bool:
    with contextlib.closing(sqlite3.connect(store)) as db:
        return bool(db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'events'").fetchone()[0])


async def carried_on(files: dict[str, bytearray], seed: int) -> list[str]:
    """The engine itself goes on from such a state: every task comes to its end, and the checker agrees."""
    with tempfile.TemporaryDirectory(prefix="es-", dir=SWIFT) as base:
        folder = Path(base)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        log = EffectLog(folder / "effects.jsonl", lambda *_: True)
        tools = trial_tools(log, Workload(steps=6, seed=seed, call_s=0.0))
        async with Engine(folder / STORE, tools=tools, config={"engine": {"max_recoveries": 1000}}) as engine:
            for task in await engine.list(limit=50):
                while (await task.refresh()).status not in ("completed", "failed", "cancelled"):
                    for pause in await engine.inbox():
                        await (pause.not_happened() if pause.type == "uncertainOutcome" else pause.resume())
                    await asyncio.sleep(0.002)
        return [f"{one.check}: {one.what}" for one in check(folder / STORE, bounds=BOUNDS)]


def reopen(files: dict[str, bytearray], seed: int) -> list[str]:
    """A store that the engine refuses is as bad as one that it damages."""
    try:
        return asyncio.run(carried_on(files, seed))
    except EverstepError as error:
        return [f"C14: the engine does not open it: {error.message}"]


def play(durability: str, seed: int, states: int) -> Line:
    """One recording, and so many states of it."""
    record, chance = recorded(durability, seed), random.Random(seed)
    wrong: list[str] = []
    reopened = 0
    for number in range(states):
        moment = chance.randint(1, len(record.ops) if number % 4 else EARLY)
        files = state(record, moment, chance)
        found = judged(files, record, moment, all_told=durability == "power")
        if (number % REOPENED == 0 or moment <= FIRST) and not found:
            reopened += 1
            found = reopen(files, seed)
        wrong += [f"moment {moment}, state {number}: {what}" for what in found]
    syncs = sum(op.what == "sync" for op in record.ops)
    figures = {"states": states, "operations": len(record.ops), "syncs": syncs, "carried_on": reopened}
    return {"verdict": verdict(wrong), **figures, "violations": wrong[:20], "wrong": len(wrong)}


def main() -> int:
    """One recording as it was asked for, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--states", type=int, help="of one recording; else 5,000 in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=("power", "process"), default="power")
    given = parser.parse_args()
    if given.states is not None:
        line = play(given.durability, given.seed, given.states)
        print(json.dumps(line))
        return int(line["verdict"] != "passed")
    results, bad, states = Results.of_this_commit(), 0, 0
    for durability, recordings in RECORDINGS.items():
        for seed in range(1, recordings + 1):
            line = results.once(f"F2 {durability}", seed, partial(play, durability, seed, STATES))
            bad += line["verdict"] != "passed"
            states += line["states"]
            print(f"F2 {durability} seed {seed}: {line['verdict']}, {line['states']} states, {line['wrong']} wrong")
    print(f"{states} states of {sum(RECORDINGS.values())} recordings, {bad} recordings with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
