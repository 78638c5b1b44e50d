"""The same engine for a long time: what it holds does not grow with what it has done.

    python -m tests.fault.soak --minutes 10       mixed tasks and a fault every few seconds, in a process of their own
    python -m tests.fault.soak --rounds 6         so many rounds of them

After every round memory, descriptors, threads, tasks of the loop and the write-ahead log are looked at. The first
rounds warm up: caches fill, code is loaded. One line of JSON; exit 1 if something grew.
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from everstep import Ctx, Engine, Plan, Task, Transient, tool
from everstep.errors import EverstepError

TASKS = 20
WARM_UP = 3
WAL_BYTES_MAX = 80 * 2**20
GROWTH = {"descriptors": 4, "threads": 4, "loop_tasks": 4, "rss_mb": 24.0}
"""How much more there may be at the end than when it was warm, however long it lasted."""
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
    descriptors: int
    threads: int
    loop_tasks: int
    wal_bytes: int

    @classmethod
    def now(cls, store: Path) -> "Sample":
        gc.collect()
        me, wal = psutil.Process(), store.with_name(f"{store.name}-wal")
        return cls(
            rss_mb=round(me.memory_info().rss / 2**20, 1),
            descriptors=me.num_fds(),
            threads=me.num_threads(),
            loop_tasks=len(asyncio.all_tasks()),
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
        )


async def carried(engine: Engine, number: int) -> dict[str, int]:
    """One round to its end: tasks with retries, items, questions and large values; some are paused, some cancelled."""
    tasks = [await engine.start(Plan.from_dict(PLAN), key=f"soak-{number}-{n}") for n in range(TASKS)]
    await refused(tasks[0].pause("immediate"))
    await refused(tasks[1].cancel())
    watched = [asyncio.create_task(to_its_end(task)) for task in tasks[:4]]
    ends: dict[str, int] = {}
    while sum(ends.values()) < TASKS:
        for pause in await engine.inbox():
            if pause.type == "uncertainOutcome":
                await refused(pause.not_happened())
            else:
                await refused(pause.approve() if "approve" in pause.answers else pause.resume())
        await asyncio.sleep(0.01)
        stands = [(await task.refresh()).status for task in tasks]
        ends = {status: stands.count(status) for status in ENDED if status in stands}
    await asyncio.gather(*watched)
    return ends


async def to_its_end(task: Task) -> None:
    """A subscriber, who goes when the task has ended."""
    async for _ in task.events():
        pass


async def refused(work: Any) -> None:
    """What is refused is refused."""
    try:
        await work
    except EverstepError:
        return


async def soak(folder: Path, *, rounds: int | None, seconds: float = 0.0) -> dict[str, Any]:
    """So many rounds, or until the time is over."""
    store, samples, ends = folder / "soak.db", list[Sample](), dict[str, int]()
    began = time.monotonic()
    async with Engine(store, tools=[busy, once, long, read], config={"log_level": "error"}) as engine:
        while (len(samples) < rounds) if rounds is not None else (time.monotonic() - began < seconds):
            for status, count in (await carried(engine, len(samples))).items():
                ends[status] = ends.get(status, 0) + count
            samples.append(Sample.now(store))
    return {"rounds": len(samples), "ends": ends, **told(samples)}


def told(samples: list[Sample]) -> dict[str, Any]:
    """Warm and at the end, and what grew too much."""
    warm, last = samples[min(WARM_UP, len(samples)) - 1], samples[-1]
    grown = {name: getattr(last, name) - getattr(warm, name) for name in GROWTH}
    wrong = [f"{name} grew by {more:g}" for name, more in grown.items() if more > GROWTH[name]]
    wal = max(sample.wal_bytes for sample in samples)
    wrong += [f"the log has {wal} bytes"] if wal > WAL_BYTES_MAX else []
    return {"warm": warm._asdict(), "last": last._asdict(), "wal_max": wal, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everstep-soak-") as folder:
        found = asyncio.run(soak(Path(folder), rounds=given.rounds, seconds=given.minutes * 60))
    print(json.dumps(found))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
