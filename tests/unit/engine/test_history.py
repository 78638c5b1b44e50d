"""History follows the journal: every call is counted once, whatever dies, and nobody counts while steps run."""

import asyncio
from pathlib import Path

import pytest

from everstep import Engine, Plan, tool
from everstep.domain.history import STANDING, Kind
from everstep.engine.upkeep import historian
from everstep.ports.history import HistoryFilter
from everstep.ports.store import Store
from everstep.ports.tool import Call, Prior, Transient
from everstep.testing import TestEngine, fake

STANDING_TOOLS = HistoryFilter(kind=Kind.TOOL, since=STANDING, until=STANDING)
EVERY = f"{historian.EVERY_MS}ms"


def by_size(call: Call) -> Prior | None:
    size = call.arguments["size"]
    assert isinstance(size, int)
    if size < 0:
        raise ValueError("no size")
    return Prior(p10_s=size, p50_s=size, p90_s=size, size_class="big" if size > 10 else "small")


@tool.pure("copy", estimate=by_size)
async def copy(size: int) -> int:
    """Copy."""
    return size


def steps(*sizes: int) -> Plan:
    return Plan.from_dict(
        {
            "name": "counted",
            "steps": [{"id": f"s{at}", "tool": "copy", "with": {"size": size}} for at, size in enumerate(sizes)],
        }
    )


async def counts(store: Store) -> dict[tuple[str, str, str], float]:
    rows = await store.history.rows(STANDING_TOOLS)
    return {(row.key.name, row.key.size, row.key.outcome): row.sketch.n for row in rows}


async def test_calls_are_counted_by_size_a_little_later() -> None:
    async with TestEngine([copy]) as engine:
        await (await engine.start(steps(1, 100, 2, -1))).result()
        assert await counts(engine.store) == {}, "not while steps run"
        await engine.clock.advance(EVERY)
        expected = {("copy", "small", "succeeded"): 2, ("copy", "big", "succeeded"): 1, ("copy", "", "succeeded"): 1}
        assert await counts(engine.store) == expected


async def test_retries_and_times_are_known() -> None:
    slow = fake(raises=[Transient("down"), None], delay=["2s", "7s"])
    async with TestEngine({"copy": slow}) as engine:
        task = await engine.start(steps(1))
        await engine.clock.advance("1m")
        await task.result()
        await engine.clock.advance(EVERY)
        rows = {row.key.outcome: row.sketch for row in await engine.store.history.rows(STANDING_TOOLS)}
        assert {outcome: sketch.n for outcome, sketch in rows.items()} == {"succeeded": 1, "failed": 1, "retry": 1}
        assert (rows["succeeded"].total_ms, rows["failed"].total_ms) == (7_000, 2_000)
        assert 500 <= rows["retry"].total_ms <= 1_000


async def test_an_engine_at_rest_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with TestEngine([copy]) as engine:
        await (await engine.start(steps(1))).result()
        await engine.clock.advance("1m")
        looks = 0
        real = engine.store.history.gather

        async def gather(sized: frozenset[str], limit: int) -> object:
            nonlocal looks
            looks += 1
            return await real(sized, limit)

        monkeypatch.setattr(engine.store.history, "gather", gather)
        await engine.clock.advance("24h")
        assert looks == 0


async def nothing_gathered(*_: object) -> bool:
    return False


async def test_a_crash_loses_nothing_and_counts_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended before anybody counted: the next engine catches up; and the one after it finds nothing to add."""
    path = tmp_path / "everstep.db"
    with monkeypatch.context() as crashing:
        crashing.setattr(historian.Historian, "catch_up", nothing_gathered)
        async with Engine(path, tools=[copy]) as engine:
            await engine.run(steps(1, 2, 3))
            assert await counts(store_of(engine)) == {}
    for _ in range(2):
        async with Engine(path, tools=[copy]) as engine, asyncio.timeout(60):
            while not await counts(store_of(engine)):  # noqa: ASYNC110 -- another duty writes it
                await asyncio.sleep(0.01)
            assert await counts(store_of(engine)) == {("copy", "small", "succeeded"): 3}


def store_of(engine: Engine) -> Store:
    assert engine._parts is not None
    return engine._parts.runtime.kit.store


async def test_a_planned_stop_keeps_what_is_known(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with Engine(path, tools=[copy]) as engine:
        await engine.run(steps(1, 2))
    async with Engine(path, tools=[copy], worker=False) as engine:
        assert await counts(store_of(engine)) == {("copy", "small", "succeeded"): 2}
