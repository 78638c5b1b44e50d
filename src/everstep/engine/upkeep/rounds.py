"""Rounds: every half minute all families of tools are asked how they are.

One whose tools are programs would have to start something to answer: it is asked only while a task here uses it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from everstep.domain.ids import Instant
from everstep.domain.task import TaskState
from everstep.engine.kit import Kit
from everstep.engine.wellness import ask
from everstep.ports.tool import ToolAdapter

FIRST_MS: Final = 5_000
"""Whoever only runs a short task asks nobody."""
EVERY_MS: Final = 30_000


class Rounds:
    """One engine's."""

    def __init__(self, kit: Kit, carried: Callable[[], Sequence[TaskState]]) -> None:
        self._kit = kit
        self._carried = carried

    async def watch(self) -> None:
        """Until dropped."""
        wait = FIRST_MS
        while True:
            await self._kit.clock.sleep_until(Instant(self._kit.clock.now() + wait))
            wait = EVERY_MS
            await asyncio.gather(*(self.look(adapter) for adapter in self._due()))

    async def look(self, adapter: ToolAdapter) -> None:
        """Ask one of them; whoever watches hears of a change."""
        kit = self._kit
        before, health = kit.wellness.of(adapter), await ask(adapter)
        kit.wellness.learn(adapter, health, kit.clock.now())
        if before is None or before.health.status != health.status:
            for spec in adapter.tools():
                kit.feed.tell_all("tool", name=spec.name, status=health.status, detail=health.detail)

    def _due(self) -> Iterator[ToolAdapter]:
        used = {tool for state in self._carried() for tool in _tools_of(state)}
        for adapter in self._kit.catalog.families:
            specs = adapter.tools()
            if not all(spec.isolation == "process" for spec in specs) or any(spec.name in used for spec in specs):
                yield adapter


def _tools_of(state: TaskState) -> Iterator[str]:
    for step in state.plan.steps:
        yield from (tool for tool in (step.tool, *(other.tool for other in step.fallback)) if tool is not None)
