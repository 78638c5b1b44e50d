"""Monitoring: the desk's figures, for machines that watch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from everstep.domain.explain import Explanation, explain
from everstep.domain.histogram import Family, Labels
from everstep.domain.history import Kind
from everstep.domain.ids import Seq, TaskId
from everstep.domain.pressure import Load
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.engine.figures import counter, gauge, histogram
from everstep.engine.runtime import Runtime
from everstep.facade.insight import Insight
from everstep.ports.history import HistoryFilter
from everstep.ports.store import TaskSummary

READ_AT_ONCE: Final = 20


class Monitoring(Insight):
    """Figures of one engine and of its store. None of them tells of a single owner."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.figures = runtime.kit.figures
        """What is counted as it happens."""
        self._waits: dict[TaskId, tuple[Seq, Explanation]] = {}

    @property
    def load(self) -> Load:
        """What can be asked of this machine."""
        return self._kit.passage.load

    @property
    def busy(self) -> int:
        """How many tasks are being carried."""
        return self._runtime.loop.busy

    async def explained(self, rows: Sequence[TaskSummary]) -> Mapping[TaskId, Explanation]:
        """Why running tasks are where they are: what is walked here says so, of what waits a few are read at a time."""
        running = {one.id: one for one in rows if one.row.status is TaskStatus.RUNNING}
        told = {state.id: explain(state) for state in self._runtime.loop.carried if state.id in running}
        wait = [one for one in running.values() if one.id not in told]
        self._waits = {one.id: said for one in wait if (said := self._waits.get(one.id)) and said[0] == one.seq}
        unread = [one.id for one in wait if one.id not in self._waits][:READ_AT_ONCE]
        for state in await self.states(unread):
            self._waits[state.id] = (state.seq, explain(state))
        return told | {task: said for task, (_, said) in self._waits.items()}

    @property
    def unwell(self) -> str | None:
        """What this engine cannot look after at present, and why."""
        return "; ".join(self._kit.unwell.values()) or None

    @property
    def watchers(self) -> int:
        """How many streams are open."""
        return sum(self.figures.watchers.values())

    @property
    def dropped(self) -> int:
        """How many watchers were let go because they did not read."""
        return sum(self.figures.dropped.values())

    async def statuses(self, owner: str) -> Mapping[str, int]:
        """How many tasks of an owner stand where."""
        return await self._kit.store.history.statuses(owner, None)

    async def states(self, tasks: Sequence[TaskId]) -> list[TaskState]:
        """These tasks, those of them that are there."""
        return [state for state in await self._kit.store.load_tasks(tasks) if state is not None]

    async def families(self, version: str) -> list[Family]:
        """What was counted since the start, and how things stand now."""
        kit = self._kit
        info = await kit.store.info()
        breakers: Counter[Labels] = Counter((one.state.value,) for one in await kit.store.troubles.breakers())
        statuses: dict[Labels, float] = {(status.value,): info.tasks.get(status.value, 0) for status in TaskStatus}
        pools = kit.passage.pools.figures()
        waiting = await kit.passage.traffic.waiting()
        age_s = 0.0 if waiting.since is None else max(0, kit.clock.now() - waiting.since) / 1000
        judged: Counter[Labels] = Counter()
        for row in await kit.store.history.rows(HistoryFilter(kind=Kind.CALIBRATION)):
            judged[(row.key.outcome,)] += round(row.sketch.n)
        slots: dict[Labels, float] = {
            (pool, what): value
            for pool, figures in pools.items()
            for what, value in zip(("size", "taken", "waiting"), figures, strict=True)
        }
        return [
            gauge("info", "The version that runs.", ("version",), {(version,): 1}),
            gauge("ready", "Whether work is taken.", (), {(): int(self._runtime.gate.ready)}),
            gauge("halted", "Whether everything is halted.", (), {(): int(kit.passage.halted is not None)}),
            gauge("tasks", "Tasks that are kept.", ("status",), statuses),
            gauge("queue_tasks", "Tasks that nobody carries yet.", (), {(): waiting.tasks}),
            gauge("queue_oldest_seconds", "How long the oldest of them has waited.", (), {(): age_s}),
            gauge("held_tasks", "Tasks that are being carried here.", (), {(): self.busy}),
            gauge("breakers", "Breakers that had trouble, by state.", ("state",), breakers),
            gauge("pool_slots", "Slots of the pools in use.", ("pool", "what"), slots),
            gauge("estimates", "First estimates held against ends, of 30 days.", ("outcome",), judged),
            gauge("store_bytes", "The size of the store's file.", (), {(): info.size_bytes}),
            counter("events", "Events in the journal.", (), {(): info.events}),
            *([] if info.commits is None else [histogram("commit_seconds", "Flushes.", (), {(): info.commits})]),
            *self.figures.families(),
        ]
