"""Holders' commits, and tasks that begin where they are created: a whole batch of them in a few statements.

The guards are part of the statement; the number of changed rows confirms them. If one does not hold, the batch is taken
back and done again unit by unit.
"""

from typing import Any

from everstep.adapters.stores.postgres.desk import PgDesk
from everstep.adapters.stores.sql.apply import CreateUnit, StepUnit, Unit
from everstep.adapters.stores.sql.desk import Mismatch, last_link
from everstep.adapters.stores.sql.rows import Guard, guard_of, stale
from everstep.domain.errors import EverstepError
from everstep.domain.ids import TaskId
from everstep.ports.store import Commit, Creation


class Bulk:
    """What one batch writes together."""

    def __init__(self, desk: PgDesk) -> None:
        self._desk = desk
        self._fresh: dict[TaskId, Guard] = {}
        self._tasks: list[tuple[Any, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._updates: list[tuple[Any, ...]] = []
        self._questions: list[tuple[int, StepUnit]] = []

    def takes(self, unit: Unit) -> bool:
        """Whether it can be written with others: if refused, then before its first write."""
        if isinstance(unit, StepUnit):
            return not unit.children
        return isinstance(unit, CreateUnit) and unit.simple and not self._desk.halted

    def look(self, units: list[StepUnit]) -> None:
        """What stands of tasks that are not remembered, or not as their commits believe: in one question."""
        known = self._desk.guards.find
        unsure = []
        for unit in units:
            guard = known(unit.task)
            if guard is None or not unit.stands(guard):
                unsure.append(unit.task)
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
        self._updates.append((*unit.update(guard), commit.release))
        if unit.pauses:
            self._questions.append((guard.num, unit))
        desk.guards.put(unit.task, unit.after(guard, last_link(lines, guard.head)))
        return unit.answer

    def _task(self, unit: CreateUnit) -> Creation:
        desk, task, begun = self._desk, unit.task, unit.begun
        assert begun is not None
        unit.write()
        if task.live_max is not None:
            desk.admit(task.owner, task.live_max)
        new = unit.guard(desk.number())
        lines = desk.linked(new, task.at, unit.answer.events)
        self._tasks.append(unit.row(new.num, begun))
        self._events += lines
        if begun.commit.pauses:
            self._questions.append((new.num, begun.commit))
        desk.guards.put(task.id, begun.after(new, last_link(lines, None)))
        return unit.answer

    def write(self) -> None:
        """All of it. Raises Mismatch."""
        desk = self._desk
        if self._updates:
            self._updates.sort(key=lambda row: row[11])  # tasks are locked in the order of their numbers
            if desk.change_at_once("update_tasks", self._updates) != len(self._updates):
                raise Mismatch
        desk.change_many("insert_task", self._tasks)
        desk.insert_events(self._events)
        for num, unit in self._questions:
            desk.change_pauses(num, unit.task, unit.pauses)
