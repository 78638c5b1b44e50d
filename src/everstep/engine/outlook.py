"""What is left of a task and how long it will take: what the state says, guesses of adapters, history; then the play.

Only when somebody asks. History is read once and kept until there is more of it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from everstep.domain.errors import EngineClosed, EverstepError
from everstep.domain.estimate import UNKNOWN, Calls, Estimate, Span
from everstep.domain.history import STANDING, Kind
from everstep.domain.ids import TaskId
from everstep.domain.progress import progress_of
from everstep.domain.simulate import Outlook
from everstep.domain.task import TaskState
from everstep.engine.foresee import ANY, Known, View
from everstep.engine.kit import Kit
from everstep.ports.history import HistoryFilter

TOLD_MAX: Final = 10_000
SEEN_MAX: Final = 1_000
VISIBLE: Final = 0.005
"""Progress is told in steps of at least so much: each of them is written down first."""
FRESH_MS: Final = 500
"""So long an outlook is good, if nothing happens."""
LOOKED_AT: Final = 8
"""Of the tasks that are carried, so many stand for all when the queue is judged."""


class Outlooks:
    """One engine's view of what is to come."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._known: dict[str, Known] = {}
        self._fresh = -1
        self._told: dict[tuple[TaskId, int], float] = {}
        """How far a task was said to be, by generation; the store knows it too, so progress never falls."""
        self._spans: dict[tuple[str, str, str], Span | None] = {}
        """What history alone says of calls, by owner, tool and size class."""
        self._seen: dict[TaskId, tuple[tuple[int, int, int], Outlook]] = {}

    async def expected(self, state: TaskState) -> Estimate:
        """What is left of a task, by all that is known; for ourselves: nobody is told how far it is."""
        await self.learn(state.owner)
        return UNKNOWN if state.terminal else self._look(state).task

    async def of(self, state: TaskState) -> Outlook:
        """The same for others, and how far it is."""
        await self.learn(state.owner)
        if not state.terminal:
            await self._rise(state)
        return self.now(state)

    def now(self, state: TaskState) -> Outlook:
        """The same by what is known here, and as far as was told before; without waiting."""
        if state.terminal:
            self._seen.pop(state.id, None)
            self._told.pop((state.id, state.generation), None)
            return Outlook(task=UNKNOWN, steps={}, progress=progress_of(state))
        found = self._look(state)
        assert found.progress is not None
        told = self._told.get((state.id, state.generation), 0.0)
        return replace(found, progress=replace(found.progress, fraction=told))

    def _look(self, state: TaskState) -> Outlook:
        """With the progress that could be told."""
        self._kit.stir()
        mark = (state.seq, self._kit.kept, self._kit.clock.now() // FRESH_MS)
        seen = self._seen.get(state.id)
        if seen is not None and seen[0] == mark:
            return seen[1]
        view = View(state, self._kit, self._known.get(state.owner, {}), self._spans)
        found = replace(view.outlook(), progress=progress_of(state, view.weights()))
        if len(self._seen) >= SEEN_MAX:
            self._seen.clear()
        self._seen[state.id] = (mark, found)
        return found

    async def wait_s(self, position: int, carried: Sequence[TaskState]) -> float | None:
        """How long a task at this place of the queue will wait: places become free as those who have them end."""
        free = self._kit.limits.tasks - len(carried)
        if position <= free:
            return 0.0
        left = []
        for state in carried[:LOOKED_AT]:
            middle = (await self.expected(state)).p50
            if middle is None:
                return None
            left.append(middle)
        whole_s = 2 * sum(left) / max(1, len(left))  # who is met under way has half of it left
        return round((position - free) * whole_s / self._kit.limits.tasks, 3)

    async def _rise(self, state: TaskState) -> None:
        """What is about to be told is written down first, so that nobody tells less afterwards, after a crash neither.

        A store that cannot be written lets nothing rise.
        """
        place, marks = (state.id, state.generation), self._kit.store.marks
        with suppress(EverstepError):
            if place not in self._told or self._kit.store.news is not None:
                self._remember(place, await marks.told(*place))
            progress = self._look(state).progress
            assert progress is not None
            if progress.fraction >= self._told[place] + VISIBLE:
                await marks.tell(*place, progress.fraction)
                self._remember(place, progress.fraction)

    def _remember(self, place: tuple[TaskId, int], fraction: float) -> None:
        self._told[place] = max(fraction, self._told.pop(place, 0.0))
        if len(self._told) > TOLD_MAX:
            self._told.pop(next(iter(self._told)))

    async def learn(self, owner: str) -> None:
        """What calls of this owner came to, by tool and size class; read again when there is more."""
        if self._fresh == self._kit.kept and owner in self._known:
            return
        if self._fresh != self._kit.kept:
            self._fresh = self._kit.kept
            self._known = {}
            self._spans = {}
        which = HistoryFilter(owner=owner, kind=Kind.TOOL, since=STANDING, until=STANDING)
        found: Known = {}
        with suppress(EngineClosed):  # who has no store has no history
            for row in await self._kit.store.history.rows(which):
                for size in (row.key.size, ANY):
                    found.setdefault((row.key.name, size), Calls()).add(row.key.outcome, row.sketch)
        self._known[owner] = found
