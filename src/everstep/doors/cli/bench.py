"""What needs parts of an engine but no engine: judging plans without a store, keeping a store without tasks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from everstep.bootstrap import build
from everstep.domain.ids import Instant
from everstep.doors.cli.engines import ApiTalk
from everstep.facade.desk import Desk
from everstep.ports.housekeeping import Housekeeping
from everstep.ports.store import Page, Store, TaskFilter
from everstep.settings import Settings


class Bench(Desk):
    """A desk that has tools and no store: plans can be judged at it, and nothing else happens."""

    @property
    def gate(self) -> Any:  # noqa: ANN401 -- the engine's own type
        """Open, since nothing has to be recovered first."""
        return replace(super().gate, ready=True, reason="")

    async def list(self, which: TaskFilter) -> Page:  # noqa: ARG002 -- the desk's own
        """Nothing was ever done here."""
        return Page(items=(), next_cursor=None)


def judge(settings: Settings, tools: tuple[object, ...]) -> ApiTalk:
    """Somebody who knows the tools and opens nothing."""
    parts = build(settings, tools, carries="none")
    return ApiTalk(Bench(parts.runtime, parts.workspace), settings)


@asynccontextmanager
async def open_keeping(settings: Settings) -> AsyncIterator[Store]:
    """The store itself, for those who look after it: locked, no task is touched. Raises StoreLocked."""
    runtime = build(replace(settings, tools=()), (), carries="none").runtime
    await runtime.open()
    try:
        yield runtime.kit.store
    finally:
        await runtime.close()


@asynccontextmanager
async def open_housekeeping(settings: Settings) -> AsyncIterator[tuple[Housekeeping, Instant]]:
    """What is done to a store as a whole, and the time; locked like above."""
    runtime = build(replace(settings, tools=()), (), carries="none").runtime
    await runtime.open()
    try:
        yield runtime.kit.passage.traffic.housekeeping, runtime.kit.clock.now()
    finally:
        await runtime.close()
