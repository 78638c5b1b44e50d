"""The desk on a file. There is one writer, so what is remembered of the file is true."""

from collections.abc import Iterator
from typing import Any

import apsw

from everstep.adapters.stores.chain import Seal
from everstep.adapters.stores.journal import too_many_tasks
from everstep.adapters.stores.sql.desk import HALT, Desk, Guards
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.ids import WorkerId


class SqliteDesk(Desk):
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
        """One by one, as they are found."""
        return self.connection.execute(sql(name), values)

    def run(self, name: str) -> None:
        """A statement without values or rows."""
        self._cursor.execute(sql(name))

    def change(self, name: str, values: Any) -> int:
        """How many rows it changed."""
        self._cursor.execute(sql(name), values)
        return self.connection.changes()

    def change_many(self, name: str, values: list[tuple[Any, ...]]) -> int:
        """One statement, many rows."""
        if not values:
            return 0
        before = self.connection.total_changes()
        self._cursor.executemany(sql(name), values)
        return self.connection.total_changes() - before

    def insert_events(self, rows: list[tuple[Any, ...]]) -> None:
        """A place is the key of the row."""
        self.change_many("insert_event", rows)

    def forget_journal(self, num: int) -> None:
        """But the newest line of all keeps its number: it would be given again."""
        self.change("delete_events", {"task": num})
        self.change("keep_newest_number", {"task": num})

    def number(self) -> int:
        """The next one."""
        if self._last_num is None:
            ((self._last_num,),) = self.rows("last_num")
        self._last_num += 1
        return self._last_num

    @property
    def halted(self) -> bool:
        """Looked up once; true because there is one writer."""
        if self._halted is None:
            self._halted = any(self.rows("get_meta", (HALT,)))
        return self._halted

    def look_again(self) -> None:
        """Into the file."""
        self._halted = self._last_num = None

    def admit(self, owner: str, most: int) -> None:
        """Counted now and then: tasks only end meanwhile, as many as were missing may follow before the next count."""
        left = self._headroom.get(owner, 0)
        if left <= 0:
            ((live,),) = self.rows("count_live", (owner,))
            left = most - live
        if left <= 0:
            raise too_many_tasks(most)
        self._headroom[owner] = left - 1

    def in_turn(self, what: str, name: str) -> None:
        """There is one writer."""
