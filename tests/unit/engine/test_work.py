"""How much work one step costs, counted instead of timed: the limits stand in `work.toml` and may only fall.

Workload W of the benchmark, once alone and once with a hundred tasks in flight, on a real file.
"""

import asyncio
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import everstep
from everstep import Ctx, Engine, Plan, tool
from everstep.domain.values import JsonObject

LIMITS = tomllib.loads((Path(__file__).parent / "work.toml").read_text(encoding="utf-8"))
HOME = str(Path(everstep.__file__).parent)
STEPS = 10
ARGUMENT: JsonObject = {
    "tool": "search_documents",
    "query": "q" * 100,
    "options": {"limit": 10, "lang": "en", "fuzzy": True},
}
RESULT: JsonObject = {"ok": True, "items": ["a" * 40, "b" * 40, "c" * 40], "usage": {"in": 12, "out": 34}}


@tool("bench.work", effect="idempotent")
async def work(request: dict[str, Any], *, ctx: Ctx) -> dict[str, Any]:
    return RESULT


PLAN = Plan.from_dict(
    {"name": "w", "steps": [{"id": f"s{n}", "tool": "bench.work", "with": {"request": ARGUMENT}} for n in range(STEPS)]}
)


class Counted:
    """What is done while it is open: our own functions by the thread they run in, and SQLite's statements."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.statements: list[str] = []
        self._open = False
        threading.setprofile(self._look)  # threads that begin from now on; a writer begins with its store

    def begin(self, writer: apsw.Connection) -> None:
        writer.trace_v2(apsw.SQLITE_TRACE_STMT, lambda said: self.statements.append(said["sql"]))
        self._open = True
        sys.setprofile(self._look)

    def end(self) -> None:
        self._open = False
        sys.setprofile(None)
        threading.setprofile(None)

    def _look(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._open and event == "call" and frame.f_code.co_filename.startswith(HOME):
            self.calls[threading.current_thread().name] += 1


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    yield counted
    counted.end()


async def carry(engine: Engine, tasks: int) -> None:
    async def one() -> None:
        (await (await engine.start(PLAN)).result()).raise_for_status()

    await asyncio.gather(*(one() for _ in range(tasks)))


@pytest.mark.parametrize("tasks", [1, 100])
async def test_a_step_costs_no_more_than_this(tmp_path: Path, counted: Counted, tasks: int) -> None:
    async with Engine(tmp_path / "everstep.db", tools=[work], config={"engine": {"tasks": 100}}) as engine:
        await carry(engine, 2)  # what is worked out once per plan is not counted
        inside: Any = engine.desk
        for watch in inside._runtime.duties._watches:  # what looks at tasks by the clock is no part of a step
            watch.cancel()
        hold = inside._kit.store._hold
        writer, tally = hold.ledger._desk.connection, hold.writes.tally
        flushes, (events, size) = tally.flushes, journal(writer)
        counted.begin(writer)
        await carry(engine, tasks)
        counted.end()
        now, now_size = journal(writer)
        done = {
            "calls_on_the_loop": counted.calls["MainThread"],
            "calls_of_the_writer": counted.calls["everstep-writer"],
            "statements": sum(not one.startswith("--") for one in counted.statements),
            "transactions": sum(one.startswith("COMMIT") for one in counted.statements),
            "flushes": tally.flushes - flushes,
            "events": now - events,
            "journal_bytes": now_size - size,
        }
    found = {name: round(count / (tasks * STEPS), 2) for name, count in done.items()}
    limits = LIMITS[f"in_flight_{tasks}"]
    assert found.keys() == limits.keys()
    over = {name: f"{found[name]}, at most {most}" for name, most in limits.items() if found[name] > most}
    assert not over, f"a step costs {found}"


def journal(writer: apsw.Connection) -> tuple[int, int]:
    ((events, size),) = writer.execute("SELECT count(*), sum(length(body)) FROM events")
    return int(events), int(size)
