"""The store of a fleet: the verbs of the port on one PostgreSQL that any number of engines share.

Writes go through one thread (`groupcommit`, `ledger`), reads through a few others (`readers`); the loop waits for
neither. What is returned is durable. Leases are kept by the clock of the database: times that a worker says by its own
clock count as so long ago.
"""

from collections.abc import Sequence

from everstep.adapters.stores.postgres.connect import Durability
from everstep.adapters.stores.postgres.hold import Hold, open_store
from everstep.adapters.stores.postgres.news import PgNews
from everstep.adapters.stores.postgres.opening import IDLE_MS, Setup
from everstep.adapters.stores.sql import audit, questions
from everstep.adapters.stores.sql.store import SqlStore
from everstep.domain.errors import EngineClosed
from everstep.domain.ids import Instant, Millis, WorkerId
from everstep.ports import store as port
from everstep.ports.clock import Clock
from everstep.ports.fault import Fault, no_fault


class PgStore(SqlStore):
    """One database, many engines."""

    _held: Hold | None = None

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        fault: Fault = no_fault,
        durability: Durability = "power",
        audit_key: str = "",
        listen_url: str = "",
        idle_ms: int = IDLE_MS,
    ) -> None:
        super().__init__(clock)
        self._setup = Setup(
            url=url,
            durability=durability,
            fault=fault,
            audit_key=audit_key,
            listen_url=listen_url,
            idle_ms=min(IDLE_MS, idle_ms),
        )

    @property
    def _hold(self) -> Hold:
        if self._held is None:
            raise EngineClosed("the store is not open")
        return self._held

    async def open(self, worker: port.Worker) -> None:
        """Connect, verify, register; raises StoreRefused, Unavailable. Never another store instead."""
        assert self._held is None, "open once"
        self._held = await open_store(self._setup, worker, self._clock)

    async def close(self) -> None:
        """Mark the worker released, let go of everything. Closing twice is harmless."""
        held, self._held = self._held, None
        if held is not None:
            await held.close()

    def beat(self, worker: WorkerId, at: Instant) -> None:
        """Renew the worker's lease; raises LeaseLost when it was fenced."""
        self._hold.beats.beat(worker, at, Millis(self._clock.now() - at))

    def _silence(self, me: WorkerId, before: Instant) -> dict[str, str | int]:
        now = self._clock.now()
        return {"at": now, "me": me, "age": now - before}

    async def _end_fenced(self) -> None:
        idle_ms = self._setup.idle_ms
        await self._hold.readers.read(lambda reader: reader.rows("end_silent", (idle_ms,), writes=True))

    @property
    def news(self) -> PgNews:
        """What other engines do."""
        return self._hold.news

    # Keeping

    async def info(self, *, whole: bool = False) -> port.Info:
        """Figures for health and doctor; a store in trouble says so instead of counting."""
        hold = self._hold
        trouble, tally = hold.ledger.trouble, hold.writes.tally
        tasks: dict[str, int] = {}
        events = size_bytes = 0
        if trouble is None:
            tasks, events, size_bytes = await hold.readers.read(questions.counts)
        head = await hold.readers.read(audit.head) if whole and trouble is None else None
        return port.Info(
            kind="postgresql",
            location=hold.place,
            schema_version=hold.schema_version,
            durability=self._setup.durability,
            tasks=tasks,
            events=events,
            size_bytes=size_bytes,
            details=questions.facts(
                status="ok" if trouble is None else "down",
                reason=None if trouble is None else trouble.message,
                audit_head=head,
                flushes=tally.flushes,
                units=tally.units,
                largest_group=tally.largest,
                late_writes_refused=hold.ledger.refused,
                lost_answers_committed=hold.ledger.resolved["committed"],
                lost_answers_sent_again=hold.ledger.resolved["sent again"],
            ),
            commits=tally.seconds,
        )

    async def check(self) -> Sequence[port.Flaw]:
        """Every journal; one line per problem. The tables themselves are the database's business."""
        hold = self._hold
        return await hold.readers.read(lambda reader: audit.check_journals(reader, hold.artifacts.read, hold.seal))
