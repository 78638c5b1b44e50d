"""What most tests of the engine begin with: tools that count their calls, and an engine that has them."""

from collections.abc import AsyncIterator

import pytest

from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def engine(tools: Tools) -> AsyncIterator[TestEngine]:
    async with TestEngine(tools.all()) as opened:
        yield opened
        assert await opened.store.check() == [], "rows follow from journals"
