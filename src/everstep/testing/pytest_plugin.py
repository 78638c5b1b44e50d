"""Fixtures for users' tests, and the timeline of a test that failed.

    async def test_brief(everstep_engine):
        async with everstep_engine(tools=FAKES) as t:
            …

Loaded by pytest wherever everstep is installed: nothing of it is imported before somebody asks.
"""

import asyncio
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from everstep.testing.clock import VirtualClock
    from everstep.testing.engine import TestEngine

_ENGINES: "pytest.StashKey[list[TestEngine]]" = pytest.StashKey()


@pytest.fixture
def everstep_clock() -> "VirtualClock":
    """Time that the test moves; shared by the engines of the test."""
    from everstep.testing.clock import VirtualClock

    return VirtualClock()


@pytest.fixture
def everstep_engine(
    request: pytest.FixtureRequest, tmp_path: Path, everstep_clock: "VirtualClock"
) -> "Iterator[Callable[..., TestEngine]]":
    """Engines in memory with a folder of their own, to be opened by `async with`."""
    from everstep.testing.engine import TestEngine

    made = request.node.stash.setdefault(_ENGINES, [])

    def make(**wanted: Any) -> TestEngine:  # noqa: ANN401 -- as TestEngine takes them
        engine = TestEngine(**{"workspace": tmp_path, "clock": everstep_clock, **wanted})
        made.append(engine)
        return engine

    yield make
    made.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its tasks did."""
    report = yield
    if call.when == "call" and report.failed:
        for engine in item.stash.get(_ENGINES, []):
            from everstep.testing.timeline import timeline

            report.sections.append(("everstep tasks", asyncio.run(timeline(engine.store))))
    return report
