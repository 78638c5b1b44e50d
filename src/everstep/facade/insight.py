"""Insight: how it went, for people who wonder. Over some hours by history, of one task by its journal."""

from collections.abc import Mapping, Sequence
from typing import Final

from everstep.domain.events import Recorded
from everstep.domain.history import HOUR_MS, HistoryRow, hour_of
from everstep.domain.ids import Instant, Seq
from everstep.domain.record import record
from everstep.domain.regression import Timed
from everstep.domain.task import TaskState
from everstep.domain.timeline import Leg, Timeline, critical_path, timeline_of
from everstep.engine.runtime import Runtime
from everstep.engine.upkeep.pace import RECENT
from everstep.ports.history import HistoryFilter
from everstep.wire.event import decode

CATCH_UP_S: Final = 1.0
"""What somebody who asks waits at most for history."""
PAGE: Final = 500


@record
class Seen:
    """What there is about the last hours. To add it up takes a while: not on the loop."""

    rows: Sequence[HistoryRow]
    now: Mapping[str, int]
    """Tasks by status."""
    calls: tuple[Timed, ...]
    """Of late."""
    as_of: Instant


class Insight:
    """Answers about the past."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kit = runtime.kit

    async def stats(self, owner: str, plan: str | None, hours: int) -> Seen:
        """How it went over the last hours; what has just ended is taken in first."""
        await self._runtime.duties.historian.catch_up(CATCH_UP_S)
        kit, now = self._kit, self._kit.clock.now()
        history = kit.store.history
        which = HistoryFilter(owner=owner, plan=plan, since=hour_of(Instant(now - hours * HOUR_MS)))
        calls = [one for one in await history.recent(RECENT) if one.owner == owner and plan in (None, one.plan)]
        return Seen(
            rows=await history.rows(which), now=await history.statuses(owner, plan), calls=tuple(calls), as_of=now
        )

    async def report(self, state: TaskState) -> tuple[Timeline, list[Leg]]:
        """Where the time of a task went, and the way that decided when it ended."""
        kit, now = self._kit, self._kit.clock.now()
        journal: list[Recorded] = []
        while page := await kit.store.read_events(state.id, Seq(len(journal)), PAGE):
            journal += [decode(one.encoded) for one in page]
        timeline, seen = timeline_of(journal, state.owner, now)
        return timeline, critical_path(seen, kit.graph(seen), now)
