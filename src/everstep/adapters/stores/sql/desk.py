"""The writer's desk as units see it: a connection inside a transaction, and what is known of held tasks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Final

from everstep.adapters.stores.chain import START, Seal
from everstep.adapters.stores.journal import (
    PauseChange,
    PauseClosed,
    PauseOpened,
    PausesWithdrawn,
    PauseWarned,
)
from everstep.adapters.stores.sql.rows import Guard, guard_of
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.ports.store import Journaled
from everstep.wire.pause import encode_pause
from everstep.wire.times import to_text

HALT: Final = "halt"
"""The word under which the store keeps that everything is halted."""


class Mismatch(Exception):
    """The database does not agree with what was in memory."""


class Guards:
    """What the database said last of the tasks that are held; the row count of each write confirms it.

    Follows each unit, steps back with its savepoint, and is forgotten for every task of a batch that failed.
    """

    def __init__(self) -> None:
        self._held: dict[TaskId, Guard] = {}
        self._log: list[tuple[TaskId, Guard | None]] = []
        self.find: Final = self._held.get
        """None: look into the database."""

    def put(self, task: TaskId, guard: Guard) -> None:
        """After a write of this batch."""
        self._log.append((task, self._held.get(task)))
        self._held[task] = guard

    @property
    def mark(self) -> int:
        """Where a unit begins."""
        return len(self._log)

    def step_back(self, mark: int) -> None:
        """A unit was undone."""
        while len(self._log) > mark:
            task, before = self._log.pop()
            if before is None:
                del self._held[task]
            else:
                self._held[task] = before

    def keep(self) -> None:
        """The batch is durable. Tasks that nobody holds any more are let go, so that memory stays bounded."""
        for task, _ in self._log:
            guard = self._held.get(task)
            if guard is not None and guard.worker is None:
                del self._held[task]
        self._log.clear()

    def forget(self) -> None:
        """The batch failed: nothing is known of its tasks."""
        for task, _ in self._log:
            self._held.pop(task, None)
        self._log.clear()

    def floors(self) -> dict[TaskId, Seq]:
        """How far the journals of held tasks were acknowledged; whatever this batch did is not."""
        self.step_back(0)
        return {task: guard.last_seq for task, guard in self._held.items()}

    def clear(self) -> None:
        """Nothing is known of any task."""
        self._held.clear()
        self._log.clear()


class Desk(ABC):
    """The writer's connection inside a transaction, and its memory."""

    guards: Guards
    me: WorkerId
    seal: Seal

    @abstractmethod
    def rows(self, name: str, values: Any = None) -> Iterable[tuple[Any, ...]]:
        """The rows of a named statement; what they hold is the statement's business."""

    @abstractmethod
    def change(self, name: str, values: Any) -> int:
        """How many rows it changed."""

    @abstractmethod
    def change_many(self, name: str, values: list[tuple[Any, ...]]) -> int:
        """One statement, many times; how many rows all of them changed."""

    @abstractmethod
    def insert_events(self, rows: list[tuple[Any, ...]]) -> None:
        """Lines of journals, each with the next place in the order of all commits."""

    @abstractmethod
    def forget_journal(self, num: int) -> None:
        """Delete the journal of a task; no place in the order of all commits is ever given again."""

    @abstractmethod
    def number(self) -> int:
        """Of a new task."""

    @property
    @abstractmethod
    def halted(self) -> bool:
        """Whether no intent may be granted."""

    @abstractmethod
    def look_again(self) -> None:
        """Into the database, for all that is remembered of it: it was written, or a batch failed."""

    @abstractmethod
    def admit(self, owner: str, most: int) -> None:
        """One more task of this owner, counted from live rows; raises LimitExceeded."""

    @abstractmethod
    def in_turn(self, what: str, name: str) -> None:
        """Until this transaction ends nobody else does the same with the same name."""

    def candidates(self, name: str, values: Any) -> Iterable[tuple[Any, ...]]:
        """Tasks that may be claimed, in their order; nobody else claims them before this transaction ends."""
        return self.rows(name, values)

    def guard(self, task: TaskId) -> Guard | None:
        """What stands now; None if there is no such task."""
        return self.guards.find(task) or next((guard_of(row) for row in self.rows("find_guard", (task,))), None)

    def free_guard(self, task: TaskId) -> Guard | None:
        """The same, without waiting; None also if somebody writes the task at this moment."""
        return self.guard(task)

    def linked(self, guard: Guard, at: Instant, events: Sequence[Journaled]) -> list[tuple[Any, ...]]:
        """Rows of a journal, each linked to the one before; the last column of the last one is the new head."""
        num, link, seal = guard.num, guard.head or START, self.seal
        rows = []
        for event in events:
            link = seal(link + event.encoded)
            rows.append((num, event.seq, at, event.type, event.step, event.encoded.decode(), link))
        return rows

    def append(self, guard: Guard, at: Instant, events: Sequence[Journaled]) -> bytes:
        """Lines of one journal; returns its new head."""
        rows = self.linked(guard, at, events)
        self.insert_events(rows)
        return last_link(rows, guard.head)

    def change_pauses(self, num: int, task: TaskId, changes: Iterable[PauseChange]) -> None:
        """The list of pauses follows the journal."""
        for change in changes:
            match change:
                case PauseOpened(pause=pause, at=at, due_at=due_at):
                    body = encode_pause(pause, task, at).decode()
                    self.change("open_pause", (pause.id, num, pause.step, pause.type, at, due_at, body))
                case PauseWarned(id=pause_id, expires_at=expires_at, due_at=due_at):
                    self.change("warn_pause", (due_at, to_text(expires_at), pause_id, num))
                case PauseClosed(id=pause_id, status=status):
                    self.change("close_pause", (status, pause_id, num))
                case PausesWithdrawn():
                    self.change("withdraw_pauses", (num,))


def last_link(rows: Sequence[tuple[Any, ...]], before: bytes | None) -> bytes:
    """The head after these rows."""
    return rows[-1][-1] if rows else before or START
