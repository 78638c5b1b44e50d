"""Holders' commits, and tasks that begin where they are created: a whole batch of them in a few statements.

They cannot collide, because each task has one holder. The number of changed rows confirms that the file agrees with the
guards in memory; if it does not, the batch is taken back and done again unit by unit.
"""

from typing import Any, Final

from everstep.adapters.stores.sql.apply import CreateUnit, StepUnit, Unit
from everstep.adapters.stores.sql.desk import Mismatch, last_link
from everstep.adapters.stores.sql.rows import stale
from everstep.adapters.stores.sqlite.desk import SqliteDesk
from everstep.domain.errors import EverstepError
from everstep.ports.store import Commit, Creation

_ORDER: Final = ("insert_task", "insert_event", "touch_task", "update_task", "release_task")


class Bulk:
    """What one batch writes together."""

    def __init__(self, desk: SqliteDesk) -> None:
        self._desk = desk
        self._find, self._put = desk.guards.find, desk.guards.put
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _ORDER}
        self._journal = self._rows["insert_event"]
        self._touches = self._rows["touch_task"]
        self._questions: list[tuple[int, StepUnit]] = []

    def takes(self, unit: Unit) -> bool:
        """Whether it can be written with others: if refused, then before its first write."""
        if isinstance(unit, StepUnit):
            return not unit.children
        return isinstance(unit, CreateUnit) and unit.simple and not self._desk.halted

    def add(self, unit: Unit) -> object:
        """The answer, once all is written."""
        try:
            return self._step(unit) if isinstance(unit, StepUnit) else self._task(unit)  # type: ignore[arg-type]
        except EverstepError as error:
            return error

    def _step(self, unit: StepUnit) -> Commit:
        unit.write()
        desk, commit = self._desk, unit.commit
        guard = self._find(unit.task) or desk.guard(unit.task)
        if guard is None or not unit.stands(guard) or (commit.proposals and desk.halted):
            return stale(guard)
        lines = desk.linked(guard, commit.at, unit.answer.events)
        self._journal += lines
        if commit.release:
            self._rows["release_task"].append(unit.update(guard))
        elif unit.steady == guard.steady:
            self._touches.append(unit.touch(guard))
        else:
            self._rows["update_task"].append(unit.update(guard))
        if unit.pauses:
            self._questions.append((guard.num, unit))
        self._put(unit.task, unit.after(guard, last_link(lines, guard.head)))
        return unit.answer

    def _task(self, unit: CreateUnit) -> Creation:
        desk, task, begun = self._desk, unit.task, unit.begun
        assert begun is not None
        unit.write()
        if task.live_max is not None:
            desk.admit(task.owner, task.live_max)
        new = unit.guard(desk.number())
        lines = desk.linked(new, task.at, unit.answer.events)
        self._rows["insert_task"].append(unit.row(new.num, begun))
        self._journal += lines
        if begun.commit.pauses:
            self._questions.append((new.num, begun.commit))
        self._put(task.id, begun.after(new, last_link(lines, None)))
        return unit.answer

    def write(self) -> None:
        """All of it. Raises Mismatch."""
        changed = sum(self._desk.change_many(name, rows) for name, rows in self._rows.items())
        if changed != sum(map(len, self._rows.values())):
            raise Mismatch
        for num, unit in self._questions:
            self._desk.change_pauses(num, unit.task, unit.pauses)
