"""The desk on a shared database: what others may write meanwhile is locked, or compared by the write itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from everstep.adapters.stores.journal import too_many_tasks
from everstep.adapters.stores.postgres.columns import columns, teach
from everstep.adapters.stores.postgres.connect import Connection
from everstep.adapters.stores.postgres.opening import Setup
from everstep.adapters.stores.postgres.sql import sql
from everstep.adapters.stores.sql.desk import HALT, Desk, Guards
from everstep.adapters.stores.sql.rows import Guard, guard_of
from everstep.domain.errors import StoreRefused
from everstep.domain.ids import TaskId, WorkerId


class PgDesk(Desk):
    """The writer's connection inside a transaction, and what is known for as long as that lasts."""

    def __init__(self, connection: Connection, guards: Guards, setup: Setup) -> None:
        self.connection = connection
        teach(connection.adapters)
        self.guards = guards
        self.me = WorkerId("")
        self.seal = setup.seal
        self._idle_ms = setup.idle_ms
        self._halted: bool | None = None
        self._numbers: list[int] = []
        self._headroom: dict[str, int] = {}
        self._locked: set[TaskId] = set()

    def begin(self, me: WorkerId, number: int) -> None:
        """A new transaction, with a mark by which it can be found again."""
        self.me = me
        cursor = self.connection.execute(sql("begin"), {"number": number, "worker": self.me, "idle": self._idle_ms})
        while cursor.nextset():
            pass
        ((self._halted, marked),) = cursor.fetchall()
        if not marked:
            raise StoreRefused(
                "this engine is not known here any more: the store was moved, or it slept for days",
                what_to_do="start it again",
            )
        self._headroom.clear()
        self._locked.clear()

    @contextmanager
    def message(self, me: WorkerId, number: int) -> Iterator[psycopg.Pipeline]:
        """The same, sent as one message with all that is written inside; what it says is heard at its end."""
        self.me = me
        with self.connection.pipeline() as pipeline:
            self.tell("start")
            self.tell("open_batch", {"idle": str(self._idle_ms)})
            self.tell("mark_batch", {"number": number, "worker": me})
            yield pipeline
            self.tell("commit")

    def rows(self, name: str, values: Any = None) -> list[tuple[Any, ...]]:
        """All of them."""
        cursor = self.connection.execute(sql(name), values)
        return cursor.fetchall() if cursor.description else []

    def run(self, name: str) -> None:
        """A statement without values or rows."""
        self.connection.execute(sql(name))

    def tell(self, name: str, values: Any = None) -> psycopg.Cursor[tuple[Any, ...]]:
        """Values are sent beside the statement: the only way inside a message."""
        return psycopg.Cursor(self.connection).execute(sql(name), values)

    def change(self, name: str, values: Any) -> int:
        """How many rows it changed."""
        return self.tell(name, values).rowcount

    def change_many(self, name: str, values: list[tuple[Any, ...]]) -> int:
        """In one statement, which takes a list per column."""
        return self.tell(name, columns(name, values)).rowcount if values else 0

    def change_all(self, name: str, rows: list[tuple[Any, ...]], *more: int) -> None:
        """The same inside a message: the statement itself fails if it does not find as many as it must."""
        if rows:
            self.tell(name, (*columns(name, rows), *more))

    def insert_events(self, rows: list[tuple[Any, ...]]) -> None:
        """Their tasks are locked by now, so their places are in order."""
        self.change_all("insert_events", rows)

    def candidates(self, name: str, values: Any) -> list[tuple[Any, ...]]:
        """Locked first; the ends of their journals are read after, when nobody can write them any more."""
        found = self.rows(name, values)
        heads = dict(self.rows("heads_of", ([row[0] for row in found],))) if found else {}
        return [(*row[:6], heads[row[0]], *row[7:]) for row in found]

    def forget_journal(self, num: int) -> None:
        """Places are never given again."""
        self.change("delete_events", (num,))

    def number(self) -> int:
        """From a handful that is ours, and was never in a transaction."""
        if not self._numbers:
            self._numbers = [number for (number,) in self.rows("task_numbers")][::-1]
        return self._numbers.pop()

    @property
    def calm(self) -> bool:
        """Whether nothing was halted when the database was looked at last."""
        return self._halted is False

    @property
    def halted(self) -> bool:
        """As of this transaction."""
        if self._halted is None:
            self._halted = bool(self.rows("get_meta", (HALT,)))
        return self._halted

    def look_again(self) -> None:
        """Into the database."""
        self._halted = None
        self._headroom.clear()
        self._locked.clear()

    def admit(self, owner: str, most: int) -> None:
        """Counted once per transaction, while nobody else adds to it."""
        if owner not in self._headroom:
            self.in_turn("owner", owner)
            ((live,),) = self.rows("count_live", (owner,))
            self._headroom[owner] = most - live
        if self._headroom[owner] <= 0:
            raise too_many_tasks(most)
        self._headroom[owner] -= 1

    def admit_all(self, owner: str, most: int, more: int) -> None:
        """So many at once; nothing is asked."""
        self.in_turn("owner", owner)
        self.tell("admit_all", (more, most, owner))

    def in_turn(self, what: str, name: str) -> None:
        """By the lock of a row."""
        self.change("in_turn", (f"{what} {name}",))

    def guard(self, task: TaskId) -> Guard | None:
        """Locked by this transaction, so that it stays as it is; what is remembered may be old."""
        return self._lock("find_guard", task)

    def free_guard(self, task: TaskId) -> Guard | None:
        """The dead may have left a transaction open: whoever looks after their tasks does not wait for its end."""
        return self._lock("find_free_guard", task)

    def _lock(self, name: str, task: TaskId) -> Guard | None:
        if task in self._locked:
            return self.guards.find(task)
        found = self.rows(name, (task,))
        if found and found[0][-1] is None:  # written by somebody else while we waited: a new look sees it
            found = self.rows(name, (task,))
        if not found:
            return None
        guard = guard_of(found[0])
        self._locked.add(task)
        self.guards.put(task, guard)
        return guard
