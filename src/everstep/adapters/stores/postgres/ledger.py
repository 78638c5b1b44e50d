"""The writer's side of the database: one transaction per batch.

What can be written in a few statements for all goes together (`bulk`), and if there is nothing else, as one message
with its COMMIT. If something does not hold, the batch is taken back and done again step by step, if need be unit by
unit, each in a savepoint. A batch that meets a lock is sent again, each unit in a transaction of its own, so that one
locked task delays no other. A connection that is lost is opened again; if COMMIT was under way, the mark of the batch
says what became of it: nothing is ever sent again blindly.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import psycopg
from psycopg import errors as pg

from everstep.adapters.stores.postgres.bulk import Bulk
from everstep.adapters.stores.postgres.connect import Connection, connect, read, translate, verify
from everstep.adapters.stores.postgres.desk import PgDesk
from everstep.adapters.stores.postgres.opening import Setup
from everstep.adapters.stores.sql.apply import StepUnit, Unit
from everstep.adapters.stores.sql.desk import Guards, Mismatch
from everstep.domain.errors import EverstepError, StoreError, Unavailable, Validation
from everstep.domain.ids import WorkerId
from everstep.ports.fault import no_fault
from everstep.ports.store import Stale

BUSY: Final = (pg.LockNotAvailable, pg.DeadlockDetected, pg.QueryCanceled, pg.SerializationFailure)
"""Somebody else was there first; another try may find the way free."""
WRONG: Final = (Mismatch, psycopg.IntegrityError, psycopg.DataError)
"""Something is not as a batch believed."""
REFUSED: Final = (EverstepError, *WRONG)
"""What undoes one unit alone."""
BACKOFF_MIN_S: Final = 0.2
BACKOFF_MAX_S: Final = 2.0
RESOLVE_MAX_S: Final = 20.0
"""How long the fate of a commit is asked for, before whoever waits for it has to look for himself."""
TRIES: Final = 3
_LATER: Final = object()
"""Stands for an answer that is not known yet."""


class PgLedger:
    """The connection that writes. Lives in the writer's thread."""

    def __init__(self, setup: Setup, me: WorkerId) -> None:
        self._setup = setup
        self._me = me
        self._fault = setup.fault
        self._guards = Guards()
        self._desk: PgDesk | None = None
        self._number = 0
        self._flushing: Callable[[], None] = _nothing
        """Called when what follows is up to the server."""
        self._next_try = 0.0
        self._backoff_s = BACKOFF_MIN_S
        self.trouble: StoreError | None = None
        """Why nothing is written at present; None when all is well."""
        self.resolved = {"committed": 0, "sent again": 0}
        """What became of commits whose answer was lost."""
        self.refused = 0
        """Commits of a holder whose task somebody else had taken by then."""

    def become(self, me: WorkerId) -> None:
        """Another incarnation from the next batch on; its mark is there already."""
        self._me = me

    def open(self, connection: Connection) -> None:
        """Take over a connection that is set up."""
        self._desk = PgDesk(connection, self._guards, self._setup)

    # --- what group commit calls ---

    def write(self, units: Sequence[Unit], flushing: Callable[[], None]) -> Sequence[object]:
        """One transaction. Raises StoreError if none of it is known to be durable."""
        self._flushing = flushing
        try:
            return self._again_and_again(units)
        except BUSY as error:
            if len(units) == 1:
                raise translate(error) from error
        return [self._by_itself(unit) for unit in units]

    def idle(self) -> float | None:
        """Try to get through again."""
        if self.trouble is None:
            return None
        with suppress(StoreError):
            self._connected()
            return None
        return max(0.05, self._next_try - time.monotonic())

    def close(self) -> None:
        """Let go of the connection."""
        if self._desk is not None:
            with suppress(psycopg.Error):
                self._desk.connection.close()
            self._desk = None

    # --- a batch ---

    def _by_itself(self, unit: Unit) -> object:
        try:
            return self._again_and_again((unit,))[0]
        except BUSY as error:
            return translate(error)
        except StoreError as error:
            return error

    def _again_and_again(self, units: Sequence[Unit]) -> Sequence[object]:
        """A lost connection is opened again, a few times."""
        for tries in range(1, TRIES + 1):
            desk = self._connected()
            try:
                return self._transact(desk, units)
            except psycopg.Error as error:
                self._undo(desk)
                if not desk.connection.closed or tries == TRIES:
                    if desk.connection.closed:
                        self._fail(error)
                    if isinstance(error, BUSY):
                        raise
                    raise translate(error) from error
            except BaseException:
                self._undo(desk)
                raise
        raise AssertionError("unreachable")

    def _transact(self, desk: PgDesk, units: Sequence[Unit]) -> Sequence[object]:
        """In one message if nothing has to be asked; else, or if something is not as believed, step by step."""
        bulk = Bulk(desk, blind=True)
        try:
            blind = desk.calm and all(map(bulk.takes, units)) and not bulk.unsure(units)
            answers = self._at_once(desk, bulk, units) if blind else self._step_by_step(desk, units)
        except WRONG:
            self._undo(desk)
            answers = self._step_by_step(desk, units)
        self._guards.keep()
        self.refused += sum(map(_came_late, units, answers))
        self._strike(units, "after")
        return answers

    def _at_once(self, desk: PgDesk, bulk: Bulk, units: Sequence[Unit]) -> Sequence[object]:
        answers = [bulk.add(unit) for unit in units]
        self._number += 1
        with self._committing(desk), desk.message(self._me, self._number) as message:
            bulk.write()
            if self._fault is not no_fault:
                message.sync()
                self._strike(units, "before")
            self._flushing()
        return answers

    def _step_by_step(self, desk: PgDesk, units: Sequence[Unit]) -> Sequence[object]:
        self._flushing()
        self._begin(desk)
        try:
            answers = self._in_bulk(desk, units)
        except WRONG:
            self._undo(desk)
            self._begin(desk)
            answers = [self._alone(desk, unit) for unit in units]
        self._strike(units, "before")
        with self._committing(desk):
            desk.run("commit")
        return answers

    @contextmanager
    def _committing(self, desk: PgDesk) -> Iterator[None]:
        """A connection that is lost in here may have committed or not: that is found out."""
        try:
            yield
        except psycopg.Error:
            if not desk.connection.closed or not self._is_committed():
                raise

    def _begin(self, desk: PgDesk) -> None:
        self._number += 1
        desk.begin(self._me, self._number)

    def _in_bulk(self, desk: PgDesk, units: Sequence[Unit]) -> list[object]:
        """Together what can be written together, then the rest in its order."""
        bulk = Bulk(desk)
        bulk.look(units)
        answers = [bulk.add(unit) if bulk.takes(unit) else _LATER for unit in units]
        bulk.write()
        return [
            self._alone(desk, unit) if answer is _LATER else answer for unit, answer in zip(units, answers, strict=True)
        ]

    def _alone(self, desk: PgDesk, unit: Unit) -> object:
        """One unit in a savepoint; what it raises stands for its answer."""
        mark = self._guards.mark
        desk.run("begin_unit")
        try:
            answer = unit.apply(desk)
        except REFUSED as error:
            desk.run("undo_unit")
            self._guards.step_back(mark)
            desk.look_again()
            if isinstance(error, EverstepError):
                return error
            return Validation(f"the store refuses the write: {error}")
        desk.run("keep_unit")
        return answer

    def _undo(self, desk: PgDesk) -> None:
        """Back to before the batch; nothing is known of its tasks any more."""
        self._guards.forget()
        desk.look_again()
        with suppress(psycopg.Error):
            if not desk.connection.closed:
                desk.run("rollback")

    def _strike(self, units: Sequence[Unit], when: str) -> None:
        if self._fault is not no_fault:
            for area in sorted({area for unit in units for area in unit.areas}):
                self._fault(f"{area}.commit.{when}")

    # --- connections that are lost ---

    def _is_committed(self) -> bool:
        """What became of a batch whose answer was lost: its mark is there, or it is not and never will be."""
        until = time.monotonic() + RESOLVE_MAX_S
        while True:
            self.close()
            try:
                desk = self._connected()
                with desk.connection.transaction():
                    found = read(desk.connection, "find_batch", (self._me,))
                    read(desk.connection, "settle_batch", {"number": self._number, "worker": self._me})
            except (psycopg.Error, StoreError):
                if time.monotonic() > until:
                    raise
                time.sleep(BACKOFF_MIN_S)
                continue
            done = found == [(self._number,)]
            self.resolved["committed" if done else "sent again"] += 1
            return done

    def _connected(self) -> PgDesk:
        """The desk, on a new connection if need be; raises Unavailable, at once if it was tried a moment ago."""
        desk = self._desk
        if desk is not None and not desk.connection.closed:
            return desk
        if self.trouble is not None and time.monotonic() < self._next_try:
            raise Unavailable(self.trouble.message)
        self._flushing()
        try:
            connection = _verified(self._setup)
        except psycopg.Error as error:
            self._fail(error)
            raise translate(error) from error
        self.trouble, self._backoff_s = None, BACKOFF_MIN_S
        self._guards.clear()
        self._desk = desk = PgDesk(connection, self._guards, self._setup)
        return desk

    def _fail(self, error: psycopg.Error) -> None:
        """Not to be tried again before a moment that is not the same for all."""
        self.close()
        said = translate(error)
        self.trouble = said if isinstance(said, StoreError) else Unavailable(said.message)
        self._next_try = time.monotonic() + self._backoff_s * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret
        self._backoff_s = min(BACKOFF_MAX_S, 2 * self._backoff_s)


def _nothing() -> None:
    """Nobody waits yet."""


def _came_late(unit: Unit, answer: object) -> bool:
    """Whether a commit was refused because its lease is somebody else's now."""
    if type(answer) is not Stale or not isinstance(unit, StepUnit):
        return False
    lease = unit.commit.lease
    return (answer.epoch, answer.worker) != (lease.epoch, lease.worker)


def _verified(setup: Setup) -> Connection:
    connection = connect(setup.url)
    try:
        verify(connection, setup.durability)
    except BaseException:
        connection.close()
        raise
    return connection
