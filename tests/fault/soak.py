"""The same engine for a long time: what it holds does not grow with what it has done.

    python -m tests.fault.soak --minutes 10 --tasks 10000   mixed tasks, until both are over
    python -m tests.fault.soak --tasks 140                  so many of them

After every round memory, descriptors, threads, tasks of the loop and the write-ahead log are looked at. The first
tasks warm up: caches fill, code is loaded. Again and again the disk is full for a moment, and the store is opened anew.
One line of JSON; exit 1 if something grew.
"""

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil

from everstep import Ctx, Engine, Plan, Task, Transient, tool
from everstep.errors import EverstepError, StoreFull, Unavailable

T = TypeVar("T")

TASKS = 20
WARM_UP = 0.4, 10_000
"""It is warm after this share of the tasks, or after so many: by then all books with an upper bound are full."""
WAL_BYTES_MAX = 80 * 2**20
GROWTH = {"descriptors": 4, "threads": 4, "loop_tasks": 4}
"""How much more there may be at the end than when it was warm, however long it lasted …"""
SHARES = {"rss_mb": 0.1, "blocks": 1.0}
"""… and by which share memory may have grown. Books with an upper bound fill for as long as they have room."""
FIRST_FAULT, FAULT_EVERY = 300, 3_000
"""Outcomes after which the disk is full for a moment."""
FAULTS = ";".join(f"outcome.commit.before:{hit}=raise(store_full)" for hit in range(FIRST_FAULT, 150_000, FAULT_EVERY))
NEAR = 3
LOAD = 0.6
"""Which share of a long trial is work."""
ENDED = ("completed", "failed", "cancelled")
PLAN: dict[str, Any] = {
    "name": "soak",
    "parallel": 3,
    "steps": [
        {"id": "busy", "tool": "soak.busy", "retry": {"times": 3, "delay": "10ms"}},
        {"id": "many", "tool": "soak.once", "for_each": [1, 2, 3], "needs": []},
        {"id": "long", "tool": "soak.long", "needs": []},
        {"id": "rest", "tool": "wait", "with": {"for": "20ms"}, "needs": ["long"]},
        {"id": "asks", "tool": "soak.read", "with": {"text": "${long.text}"}, "approve": "Go on?", "needs": ["rest"]},
    ],
}


@tool("soak.busy", effect="pure", rate="1000/1s")
async def busy(*, ctx: Ctx) -> int:
    """Fails at first, in some tasks: not in so many that it would be left alone for a while."""
    if ctx.attempt == 1 and ctx.task_id[-1] in "01":
        raise Transient("later")
    return ctx.attempt


@tool("soak.once", effect="once")
async def once() -> int:
    """An effect."""
    return 1


@tool("soak.long", effect="pure")
async def long() -> dict[str, str]:
    """More than an event holds."""
    return {"text": "long " * 10_000}


@tool("soak.read", effect="pure")
async def read(text: str) -> int:
    """What it was given."""
    return len(text)


class Sample(NamedTuple):
    """What is held between two rounds."""

    rss_mb: float
    blocks: int
    """Pieces of memory that Python has given out."""
    descriptors: int
    threads: int
    loop_tasks: int
    wal_bytes: int

    @classmethod
    def least(cls, near: Sequence["Sample"]) -> "Sample":
        """Of some that lie near each other: what is held anyway."""
        return cls(*(min(values) for values in zip(*near, strict=True)))

    @classmethod
    def now(cls, store: Path) -> "Sample":
        gc.collect()
        me, wal = psutil.Process(), store.with_name(f"{store.name}-wal")
        return cls(
            rss_mb=round(me.memory_info().rss / 2**20, 1),
            blocks=sys.getallocatedblocks(),
            descriptors=me.num_fds(),
            threads=me.num_threads(),
            loop_tasks=len(asyncio.all_tasks()),
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
        )


async def carried(engine: Engine, number: int) -> dict[str, int]:
    """One round to its end: tasks with retries, items, questions and large values; some are paused, some cancelled."""
    plan = Plan.from_dict(PLAN)
    tasks = [await insisted(partial(engine.start, plan, key=f"soak-{number}-{n}")) for n in range(TASKS)]
    await refused(tasks[0].pause("immediate"))
    await refused(tasks[1].cancel())
    watched = [asyncio.create_task(insisted(partial(to_its_end, task))) for task in tasks[:4]]
    ends: dict[str, int] = {}
    while sum(ends.values()) < TASKS:
        for pause in await insisted(engine.inbox):
            if pause.type == "uncertainOutcome":
                await refused(pause.not_happened())
            else:
                await refused(pause.approve() if "approve" in pause.answers else pause.resume())
        await asyncio.sleep(0.01)
        stands = [(await insisted(task.refresh)).status for task in tasks]
        ends = {status: stands.count(status) for status in ENDED if status in stands}
    await asyncio.gather(*watched)
    return ends


async def to_its_end(task: Task) -> None:
    """A subscriber, who goes when the task has ended."""
    async for _ in task.events():
        pass


async def insisted(ask: Callable[[], Awaitable[T]]) -> T:
    """Asked again while the store is away, as a client would."""
    while True:
        try:
            return await ask()
        except (StoreFull, Unavailable):
            await asyncio.sleep(0.1)


async def refused(work: Any) -> None:
    """What is refused is refused."""
    try:
        await work
    except EverstepError:
        return


async def soak(folder: Path, *, tasks: int, seconds: float) -> dict[str, Any]:
    """So many tasks at least, and for so long."""
    store, samples, ends = folder / "soak.db", list[Sample](), dict[str, int]()
    began = time.monotonic()
    async with Engine(store, tools=[busy, once, long, read], config={"log_level": "error"}) as engine:
        while len(samples) * TASKS < tasks or time.monotonic() - began < seconds:
            round_began = time.monotonic()
            for status, count in (await carried(engine, len(samples))).items():
                ends[status] = ends.get(status, 0) + count
            samples.append(Sample.now(store))
            if seconds:
                await asyncio.sleep((time.monotonic() - round_began) * (1 / LOAD - 1))
        done: Any = (await engine.desk.info()).details
    grouped = done["units"] - done["flushes"]
    took = time.monotonic() - began
    return {"tasks": len(samples) * TASKS, "seconds": round(took), "ends": ends, "grouped": grouped, **told(samples)}


def told(samples: list[Sample]) -> dict[str, Any]:
    """Warm and at the end, and what grew too much."""
    share, most = WARM_UP
    place = min(round(share * len(samples)), most // TASKS)
    warm, last = Sample.least(samples[place : place + NEAR]), Sample.least(samples[-NEAR:])
    grown = {name: getattr(last, name) - getattr(warm, name) for name in (*GROWTH, *SHARES)}
    allowed = {**GROWTH, **{name: share * getattr(warm, name) for name, share in SHARES.items()}}
    wrong = [f"{name} grew by {more:g}" for name, more in grown.items() if more > allowed[name]]
    wal = max(sample.wal_bytes for sample in samples)
    wrong += [f"the log has {wal} bytes"] if wal > WAL_BYTES_MAX else []
    shares = {f"{name}_grew": round(grown[name] / getattr(warm, name), 4) for name in SHARES}
    return {"warm": warm._asdict(), "last": last._asdict(), **shares, "wal_max": wal, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--tasks", type=int, default=10_000)
    given = parser.parse_args()
    os.environ["EVERSTEP_FAILPOINTS"] = FAULTS
    with tempfile.TemporaryDirectory(prefix="everstep-soak-") as folder:
        found = asyncio.run(soak(Path(folder), tasks=given.tasks, seconds=given.minutes * 60))
    print(json.dumps(found))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
