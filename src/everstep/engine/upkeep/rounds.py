"""Rounds: while there is work, all families of tools are asked every half minute how they are.

One whose tools are programs would have to start something to answer: it is asked only while a task here uses it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from everstep.domain.ids import Instant
from everstep.domain.task import TaskState
from everstep.engine.kit import Kit
from everstep.engine.wellness import Known, ask
from everstep.ports.tool import ToolAdapter

FIRST_MS: Final = 5_000
"""Whoever only runs a short task asks nobody."""
EVERY_MS: Final = 30_000


class Rounds:
    """One engine's."""

    def __init__(self, kit: Kit, carried: Callable[[], Sequence[TaskState]]) -> None:
        self._kit = kit
        self._carried = carried
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """A walk has begun or ended."""
        self._stirred.set()

    async def watch(self) -> None:
        """Until dropped."""
        clock, last = self._kit.clock, Instant(0)
        while True:
            if not self._carried():
                self._stirred.clear()
                await self._stirred.wait()
            await clock.sleep_until(Instant(max(last + EVERY_MS, clock.now() + FIRST_MS)))
            if self._carried():
                last = clock.now()
                await asyncio.gather(*(self.look(family, adapter) for family, adapter in self._due()))

    async def look(self, family: str, adapter: ToolAdapter) -> Known:
        """Ask one of them; whoever watches hears of a change."""
        kit = self._kit
        before, health = kit.passage.wellness.of(family), await ask(adapter)
        kit.passage.wellness.learn(family, health, kit.clock.now())
        if before.health.status != health.status:
            for spec in adapter.tools():
                kit.feed.tell_all("tool", name=spec.name, status=health.status, detail=health.detail)
        return kit.passage.wellness.of(family)

    def _due(self) -> Iterator[tuple[str, ToolAdapter]]:
        used = {tool for state in self._carried() for tool in _tools_of(state)}
        for family, adapter in self._kit.catalog.families.items():
            specs = adapter.tools()
            if not all(spec.isolation == "process" for spec in specs) or any(spec.name in used for spec in specs):
                yield family, adapter


def _tools_of(state: TaskState) -> Iterator[str]:
    for step in state.plan.steps:
        yield from (tool for tool in (step.tool, *(other.tool for other in step.fallback)) if tool is not None)
