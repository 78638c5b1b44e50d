"""The writer's desk: its connection inside a transaction, and what it remembers of the tasks that are held."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import apsw

from everstep.adapters.stores.chain import START, Seal
from everstep.adapters.stores.journal import (
    PauseChange,
    PauseClosed,
    PauseOpened,
    PausesWithdrawn,
    PauseWarned,
    too_many_tasks,
)
from everstep.adapters.stores.sqlite.rows import Guard, guard_of
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.ports.store import Journaled
from everstep.wire.pause import encode_pause
from everstep.wire.times import to_text

HALT: Final = "halt"
"""The word under which the store keeps that everything is halted."""


class Mismatch(Exception):
    """The file does not agree with what was in memory."""


class Guards:
    """What the file says of the tasks that are held; true because there is one writer.

    Follows each unit, steps back with its savepoint, and is forgotten for every task of a batch that failed.
    """

    def __init__(self) -> None:
        self._held: dict[TaskId, Guard] = {}
        self._log: list[tuple[TaskId, Guard | None]] = []
        self.find: Final = self._held.get
        """None: look into the file."""

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


class Desk:
    """The writer's connection inside a transaction, and its memory."""

    def __init__(self, connection: apsw.Connection, guards: Guards, me: WorkerId, seal: Seal) -> None:
        self.connection = connection
        self.guards = guards
        self.me = me
        self.seal = seal
        self._cursor = connection.cursor()
        self._halted: bool | None = None
        self._last_num: int | None = None
        self._headroom: dict[str, int] = {}

    def rows(self, name: str, values: Any = None) -> Iterator[tuple[Any, ...]]:
        """The rows of a named statement; what they hold is the statement's business."""
        return self.connection.execute(sql(name), values)

    def run(self, name: str) -> None:
        """A statement without values or rows."""
        self._cursor.execute(sql(name))

    def change(self, name: str, values: Any) -> int:
        """How many rows it changed."""
        self._cursor.execute(sql(name), values)
        return self.connection.changes()

    def change_many(self, name: str, values: list[tuple[Any, ...]]) -> None:
        """One statement, many rows."""
        if values:
            self._cursor.executemany(sql(name), values)

    def number(self) -> int:
        """Of a new task."""
        if self._last_num is None:
            ((self._last_num,),) = self.rows("last_num")
        self._last_num += 1
        return self._last_num

    @property
    def halted(self) -> bool:
        """Whether no intent may be granted; true because there is one writer."""
        if self._halted is None:
            self._halted = any(self.rows("get_meta", (HALT,)))
        return self._halted

    def look_again(self) -> None:
        """Into the file, for all that is remembered of it: it was written, or a batch failed."""
        self._halted = self._last_num = None

    def admit(self, owner: str, most: int) -> None:
        """One more task of this owner; raises LimitExceeded.

        Live rows are counted; as tasks only end meanwhile, as many as were missing may follow before the next count.
        """
        left = self._headroom.get(owner, 0)
        if left <= 0:
            ((live,),) = self.rows("count_live", (owner,))
            left = most - live
        if left <= 0:
            raise too_many_tasks(most)
        self._headroom[owner] = left - 1

    def guard(self, task: TaskId) -> Guard | None:
        """What stands now; None if there is no such task."""
        return self.guards.find(task) or next((guard_of(row) for row in self.rows("find_guard", (task,))), None)

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
        self.change_many("insert_event", rows)
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
