"""What most tests of the api begin with: tools that count their calls, and a window on an engine that has them."""

from collections.abc import AsyncIterator

import pytest

from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import Window
from tests.unit.engine.plans import Tools


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def window(tools: Tools) -> AsyncIterator[Window]:
    async with TestEngine(tools.all()) as engine:
        yield Window(engine)
        tools.release.set()
