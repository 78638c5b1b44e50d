"""The writer's side of the file: one transaction per batch, and fail-stop when the disk fails.

What can be written in a few statements for all goes first (`bulk`). If the file does not agree with what is in memory,
the batch is taken back and done again unit by unit, each in a savepoint, so that a refused one sinks no other.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from everstep.adapters.stores.chain import Seal
from everstep.adapters.stores.forks import bury
from everstep.adapters.stores.sql.apply import Unit
from everstep.adapters.stores.sql.desk import Guards, Mismatch
from everstep.adapters.stores.sqlite.bulk import Bulk
from everstep.adapters.stores.sqlite.connect import Durability, connect, make_durable, one, read, translate
from everstep.adapters.stores.sqlite.desk import SqliteDesk
from everstep.domain.errors import EverstepError, StoreError, Unavailable, Validation
from everstep.domain.ids import Seq, TaskId, WorkerId
from everstep.ports.fault import Fault, no_fault

FATAL: Final = (
    apsw.IOError,
    apsw.FullError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
)
"""After one of these nothing that a connection says can be trusted."""
BUSY_TRIES: Final = 6
"""Of 5 s each: a foreign program that looks at the file with a lock may keep us waiting, but not for ever."""
BACKOFF_MIN_S: Final = 0.5
BACKOFF_MAX_S: Final = 1.0
_LATER: Final = object()
"""Stands for an answer that is not known yet."""
WAL_BYTES_MAX: Final = 64 * 1024 * 1024
WAL_LOOK_EVERY: Final = 64
"""Batches between two looks at the size of the WAL."""


class Ledger:
    """The only read-write connection. Lives in the writer's thread."""

    def __init__(
        self,
        path: Path,
        durability: Durability,
        *,
        me: WorkerId,
        fault: Fault,
        seal: Seal,
        halt_readers: Callable[[StoreError | None], None],
    ) -> None:
        self._path = path
        self._durability = durability
        self._me = me
        self._fault = fault
        self._seal = seal
        self._halt_readers = halt_readers
        self._guards = Guards()
        self._floors: dict[TaskId, Seq] = {}
        self._desk: SqliteDesk | None = None
        self._next_try = 0.0
        self._backoff_s = BACKOFF_MIN_S
        self._since_look = 0
        self._lost = False
        self.trouble: StoreError | None = None
        """Why nothing is written at present; None when all is well."""

    def open(self, connection: apsw.Connection) -> None:
        """Take over a connection that is set up."""
        self._desk = SqliteDesk(connection, self._guards, self._me, self._seal)

    # --- what group commit calls ---

    def write(self, units: Sequence[Unit], flushing: Callable[[], None]) -> Sequence[object]:
        """One transaction. Raises StoreError if none of it is known to be durable."""
        if self.trouble is not None:
            flushing()  # to mend takes as long as it takes
            self._mend()
        if self.trouble is not None:
            raise type(self.trouble)(self.trouble.message, code=self.trouble.code)
        desk = self._desk
        assert desk is not None
        try:
            return self._transact(desk, units, flushing)
        except FATAL as error:
            self._fail(error)
            raise translate(error) from error
        except BaseException as error:
            self._undo(desk)
            if isinstance(error, apsw.Error):
                raise translate(error) from error
            raise

    def idle(self) -> float | None:
        """Mend what is broken; keep the WAL small."""
        if self.trouble is not None:
            self._mend()
        if self.trouble is None:
            self._look_at_wal()
        return self._again_in()

    def close(self) -> None:
        """Let go of the file."""
        if self._desk is not None:
            with suppress(apsw.Error):
                self._desk.connection.close()
            self._desk = None

    def poison(self) -> None:
        """In a forked child: the connection is the parent's."""
        if self._desk is not None:
            bury(self._desk.connection)

    # --- a batch ---

    def _transact(self, desk: SqliteDesk, units: Sequence[Unit], flushing: Callable[[], None]) -> Sequence[object]:
        _begin(desk, flushing)
        try:
            answers = self._in_bulk(desk, units)
        except (Mismatch, apsw.ConstraintError):
            self._undo(desk)
            _begin(desk, flushing)
            answers = [self._alone(desk, unit) for unit in units]
        self._strike(units, "before")
        flushing()
        desk.run("commit")
        self._guards.keep()
        self._strike(units, "after")
        return answers

    def _in_bulk(self, desk: SqliteDesk, units: Sequence[Unit]) -> list[object]:
        """Together what can be written together, then the rest in its order."""
        bulk = Bulk(desk)
        answers = [bulk.add(unit) if bulk.takes(unit) else _LATER for unit in units]
        bulk.write()
        return [
            self._alone(desk, unit) if answer is _LATER else answer for unit, answer in zip(units, answers, strict=True)
        ]

    def _alone(self, desk: SqliteDesk, unit: Unit) -> object:
        """One unit in a savepoint; what it raises stands for its answer."""
        mark = self._guards.mark
        desk.run("begin_unit")
        try:
            answer = unit.apply(desk)
        except (EverstepError, Mismatch, apsw.ConstraintError) as error:
            desk.run("undo_unit")
            self._guards.step_back(mark)
            desk.look_again()
            if isinstance(error, EverstepError):
                return error
            return Validation(f"the store refuses the write: {error}")
        desk.run("keep_unit")
        return answer

    def _undo(self, desk: SqliteDesk) -> None:
        """Back to before the batch; nothing is known of its tasks any more."""
        self._guards.forget()
        desk.look_again()
        with suppress(apsw.Error):
            if desk.connection.in_transaction:
                desk.run("rollback")

    def _strike(self, units: Sequence[Unit], when: str) -> None:
        if self._fault is not no_fault:
            for area in sorted({area for unit in units for area in unit.areas}):
                self._fault(f"{area}.commit.{when}")

    # --- fail-stop ---

    def _fail(self, error: apsw.Error) -> None:
        """Close everything. What was acknowledged must be there when the file is opened again."""
        self._floors |= self._guards.floors()
        self._guards.clear()
        self.trouble = translate(error)
        self._backoff_s = BACKOFF_MIN_S
        self._next_try = time.monotonic() + self._backoff_s
        self.close()
        self._halt_readers(self.trouble)

    def _mend(self) -> None:
        """Open again, if it is time to try and there is hope."""
        if self._lost or time.monotonic() < self._next_try:
            return
        try:
            self._desk = SqliteDesk(self._reopen(), self._guards, self._me, self._seal)
        except (apsw.Error, OSError) as error:
            self.trouble = translate(error)
        except StoreError as error:
            self.trouble = error
        else:
            self.trouble = None
            self._floors.clear()
            self._halt_readers(None)
            return
        self._backoff_s = min(BACKOFF_MAX_S, 2 * self._backoff_s)
        self._next_try = time.monotonic() + self._backoff_s

    def _reopen(self) -> apsw.Connection:
        """A connection whose write was committed, and read back by another one."""
        connection = connect(self._path, write=True)
        try:
            make_durable(connection, self._durability)
            self._prove(connection)
            self._check_floors(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prove(self, connection: apsw.Connection) -> None:
        value = f"{self._me} {time.monotonic_ns()}"
        read(connection, "put_meta", ("probe", value))
        fresh = connect(self._path, write=False)
        try:
            found = one(fresh, "get_meta", ("probe",))
        finally:
            fresh.close()
        if found != value:
            raise Unavailable("the store does not give back what was written")
        damage = [line for (line,) in read(connection, "quick_check") if line != "ok"]
        if damage:
            raise Unavailable(f"the store's file is damaged: {damage[0]}")

    def _check_floors(self, connection: apsw.Connection) -> None:
        """Every acknowledged intent of ours must still be there; else stay closed, for good."""
        found: dict[TaskId, Seq] = dict(read(connection, "held_seqs", {"ids": json.dumps([*self._floors])}))
        missing = sorted(task for task, seq in self._floors.items() if found.get(task, 0) < seq)
        if missing:
            self._lost = True
            names = ", ".join(missing)
            raise Unavailable(f"after a disk failure acknowledged events are missing in: {names}")

    def _again_in(self) -> float | None:
        """When to try again, if anything is broken that can be mended."""
        if self.trouble is None or self._lost:
            return None
        return max(0.0, self._next_try - time.monotonic())

    def _look_at_wal(self) -> None:
        self._since_look += 1
        if self._since_look >= WAL_LOOK_EVERY:
            self._since_look = 0
            self._truncate_wal()

    def _truncate_wal(self) -> None:
        wal = Path(f"{self._path}-wal")
        desk = self._desk
        if desk is not None and wal.exists() and wal.stat().st_size > WAL_BYTES_MAX:
            self._fault("checkpoint.truncate.before")
            try:
                with suppress(apsw.BusyError):
                    read(desk.connection, "truncate_wal")
            except FATAL as error:
                self._fail(error)
            self._fault("checkpoint.truncate.after")


def _begin(desk: SqliteDesk, flushing: Callable[[], None]) -> None:
    for _ in range(1, BUSY_TRIES):
        with suppress(apsw.BusyError):
            desk.run("begin")
            return
        flushing()
    desk.run("begin")
