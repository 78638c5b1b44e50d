"""How much work one step costs, counted instead of timed: the limits stand in `work.toml` and may only fall.

Workload W of the benchmark, once alone and once with a hundred tasks in flight, on a real file.
"""

import asyncio
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from everstep import Ctx, Engine, Plan, tool
from everstep.domain.values import JsonObject
from tests.counted import LOOP, WRITER, Counted, counting, flushes_of, writer_of

LIMITS = tomllib.loads((Path(__file__).parent / "work.toml").read_text(encoding="utf-8"))
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


@pytest.fixture
def counted() -> Iterator[Counted]:
    with counting() as counted:
        yield counted


async def carry(engine: Engine, tasks: int) -> None:
    async def one() -> None:
        (await (await engine.start(PLAN)).result()).raise_for_status()

    await asyncio.gather(*(one() for _ in range(tasks)))


@pytest.mark.parametrize("tasks", [1, 100])
async def test_a_step_costs_no_more_than_this(tmp_path: Path, counted: Counted, tasks: int) -> None:
    async with Engine(tmp_path / "everstep.db", tools=[work], config={"engine": {"tasks": 100}}) as engine:
        await carry(engine, 2)  # what is worked out once per plan is not counted
        writer = writer_of(engine.desk)
        flushes, (events, size) = flushes_of(engine.desk), journal(writer)
        counted.begin(writer)
        await carry(engine, tasks)
        counted.end()
        now, now_size = journal(writer)
        done = {
            "calls_on_the_loop": counted.calls[LOOP],
            "calls_of_the_writer": counted.calls[WRITER],
            "statements": sum(not one.startswith("--") for one in counted.statements),
            "transactions": sum(one.startswith("COMMIT") for one in counted.statements),
            "flushes": flushes_of(engine.desk) - flushes,
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
