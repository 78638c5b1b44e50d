"""Holders' commits, and tasks that begin where they are created: a whole batch of them in a few statements.

What must hold is part of the statements, which fail if it does not: then the batch is taken back and done again in
another way (`ledger`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from everstep.adapters.stores.journal import PausesWithdrawn
from everstep.adapters.stores.postgres.desk import PgDesk
from everstep.adapters.stores.sql.apply import CreateUnit, StepUnit, Unit
from everstep.adapters.stores.sql.desk import last_link
from everstep.adapters.stores.sql.rows import Guard, guard_of, stale
from everstep.domain.errors import EverstepError
from everstep.domain.ids import TaskId
from everstep.ports.store import Commit, Creation

_ENDED = [PausesWithdrawn()]


class Bulk:
    """What one batch writes together. `blind`: the database is not asked before it is told."""

    def __init__(self, desk: PgDesk, *, blind: bool = False) -> None:
        self._desk = desk
        self._blind = blind
        self._fresh: dict[TaskId, Guard] = {}
        self._tasks: list[tuple[Any, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._touches: list[tuple[Any, ...]] = []
        self._updates: list[tuple[Any, ...]] = []
        self._questions: list[tuple[int, StepUnit]] = []
        self._ended: list[tuple[int]] = []
        self._admitted: Counter[tuple[str, int]] = Counter()

    def takes(self, unit: Unit) -> bool:
        """Whether it can be written with others: if refused, then before its first write."""
        if isinstance(unit, StepUnit):
            return not unit.children
        return isinstance(unit, CreateUnit) and unit.simple and not self._desk.halted

    def unsure(self, units: Iterable[Unit]) -> list[TaskId]:
        """Tasks that are not remembered, or not as their commits believe."""
        known = self._desk.guards.find
        found = []
        for unit in units:
            if isinstance(unit, StepUnit):
                guard = known(unit.task)
                if guard is None or not unit.stands(guard):
                    found.append(unit.task)
        return found

    def look(self, units: Sequence[Unit]) -> None:
        """What stands of those: in one question."""
        unsure = self.unsure(unit for unit in units if self.takes(unit))
        if unsure:
            found = self._desk.rows("find_guards", (unsure,))
            self._fresh = {TaskId(task): guard_of(row) for task, *row in found}

    def add(self, unit: Unit) -> object:
        """The answer, once all is written."""
        try:
            return self._step(unit) if isinstance(unit, StepUnit) else self._task(unit)  # type: ignore[arg-type]
        except EverstepError as error:
            return error

    def _step(self, unit: StepUnit) -> Commit:
        unit.write()
        desk, commit = self._desk, unit.commit
        guard = self._fresh.get(unit.task) or desk.guards.find(unit.task)
        if guard is None or not unit.stands(guard) or (commit.proposals and desk.halted):
            return stale(guard)
        lines = desk.linked(guard, commit.at, unit.answer.events)
        self._events += lines
        if unit.steady == guard.steady and not commit.release:
            self._touches.append(unit.touch(guard))
        else:
            self._updates.append((*unit.update(guard), commit.release))
        if unit.pauses:
            self._pauses(guard.num, unit)
        desk.guards.put(unit.task, unit.after(guard, last_link(lines, guard.head)))
        return unit.answer

    def _task(self, unit: CreateUnit) -> Creation:
        desk, task, begun = self._desk, unit.task, unit.begun
        assert begun is not None
        unit.write()
        if task.live_max is not None:
            if self._blind:
                self._admitted[task.owner, task.live_max] += 1
            else:
                desk.admit(task.owner, task.live_max)
        new = unit.guard(desk.number())
        lines = desk.linked(new, task.at, unit.answer.events)
        self._tasks.append(unit.row(new.num, begun))
        self._events += lines
        if begun.commit.pauses:
            self._pauses(new.num, begun.commit)
        desk.guards.put(task.id, begun.after(new, last_link(lines, None)))
        return unit.answer

    def _pauses(self, num: int, unit: StepUnit) -> None:
        if unit.pauses == _ENDED:
            self._ended.append((num,))
        else:
            self._questions.append((num, unit))

    def write(self) -> None:
        """All of it, tasks in the order of their numbers. Raises DataError if something is not as it must be."""
        desk = self._desk
        for (owner, most), more in sorted(self._admitted.items()):
            desk.admit_all(owner, most, more)
        self._touches.sort(key=lambda row: row[4])
        self._updates.sort(key=lambda row: row[11])
        desk.change_all("touch_tasks", self._touches, len(self._touches))
        desk.change_all("update_tasks", self._updates, len(self._updates))
        desk.change_all("insert_tasks", self._tasks)
        desk.insert_events(self._events)
        desk.change_all("withdraw_all_pauses", self._ended)
        for num, unit in self._questions:
            desk.change_pauses(num, unit.task, unit.pauses)
