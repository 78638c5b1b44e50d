"""The embedded store: the verbs of the port on one SQLite file.

Writes go through one thread (`groupcommit`, `ledger`), reads through a few others (`readers`); the loop waits for
neither. What is returned is durable.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from everstep.adapters.stores.sql import audit, questions
from everstep.adapters.stores.sql.housekeeping import COPIED
from everstep.adapters.stores.sql.store import SqlStore
from everstep.adapters.stores.sqlite import keeping
from everstep.adapters.stores.sqlite.connect import Durability
from everstep.adapters.stores.sqlite.hold import Hold, open_store
from everstep.adapters.stores.sqlite.opening import Setup
from everstep.domain.errors import EngineClosed
from everstep.ports import store as port
from everstep.ports.clock import Clock
from everstep.ports.fault import Fault, no_fault


class SqliteStore(SqlStore):
    """One file, one engine."""

    _held: Hold | None = None
    news: Final = None
    """One engine: nobody else writes."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        fault: Fault = no_fault,
        durability: Durability = "power",
        artifacts: Path | None = None,
        allow_fuse: bool = False,
        audit_key: str = "",
    ) -> None:
        super().__init__(clock)
        self._setup = Setup(
            path=path,
            artifacts=artifacts or path.parent / "artifacts",
            durability=durability,
            allow_fuse=allow_fuse,
            fault=fault,
            audit_key=audit_key,
        )

    @property
    def _hold(self) -> Hold:
        if self._held is None:
            raise EngineClosed("the store is not open")
        return self._held

    async def open(self, worker: port.Worker) -> None:
        """Lock, migrate, verify, register; raises StoreLocked, StoreRefused, Unavailable."""
        assert self._held is None, "open once"
        self._held = await open_store(self._setup, worker, self._clock)

    async def close(self) -> None:
        """Mark the worker released, let go of everything. Closing twice is harmless."""
        held, self._held = self._held, None
        if held is not None:
            await held.close(self._clock)

    def announce(self, *, url: str | None = None, socket: str | None = None) -> None:
        """Say beside the file where this engine can be reached."""
        self._hold.announce(url, socket)

    # Keeping

    async def info(self, *, whole: bool = False) -> port.Info:
        """Figures for health and doctor; a store in trouble says so instead of counting."""
        hold = self._hold
        trouble, tally = hold.ledger.trouble, hold.writes.tally
        tasks: dict[str, int] = {}
        events = size_bytes = 0
        copied_at = None
        if trouble is None:
            tasks, events, size_bytes = await hold.readers.read(questions.counts)
            copied_at = await hold.readers.read(lambda reader: questions.meta(reader, COPIED))
        head = await hold.readers.read(audit.head) if whole and trouble is None else None
        return port.Info(
            kind="sqlite",
            location=str(hold.path),
            schema_version=hold.schema_version,
            durability=self._setup.durability,
            tasks=tasks,
            events=events,
            size_bytes=size_bytes,
            details=questions.facts(
                status="ok" if trouble is None else "down",
                reason=None if trouble is None else trouble.message,
                copied_at=copied_at,
                audit_head=head,
                flushes=tally.flushes,
                units=tally.units,
                largest_group=tally.largest,
            ),
            commits=tally.seconds,
        )

    async def check(self) -> Sequence[port.Flaw]:
        """Integrity of the file and of every journal; one line per problem."""
        hold = self._hold
        return await hold.readers.read(lambda reader: keeping.check(reader, hold.artifacts.read, hold.seal))
