"""The store that engines have on a disk, on a database in memory: its statements and its ledger, without a thread.

Each write is one transaction at one moment, each question is answered at one moment; what a simulation draws comes
between them. Engines that share it are incarnations of one another, as on a file. A write may take its time before it
is made and before it is told of, may be refused, or made without anybody hearing of it.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import apsw

from everstep.adapters.stores.chain import seal_with
from everstep.adapters.stores.groupcommit import GroupCommit, Tally
from everstep.adapters.stores.journal import check_payload
from everstep.adapters.stores.sql import questions
from everstep.adapters.stores.sql.apply import CommandUnit, CreateUnit, StatementUnit, StepUnit, Unit
from everstep.adapters.stores.sql.claim import ClaimUnit
from everstep.adapters.stores.sql.hold import Payloads, Readers
from everstep.adapters.stores.sql.store import SqlStore
from everstep.adapters.stores.sqlite.connect import connect, read, translated
from everstep.adapters.stores.sqlite.ledger import Ledger
from everstep.adapters.stores.sqlite.migrate import keep_kind, migrate, migrations
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.errors import NotFound, Unavailable
from everstep.domain.ids import Digest, Instant, WorkerId
from everstep.domain.values import JsonValue
from everstep.ports import store as port
from everstep.ports.fault import no_fault
from everstep.testing.clock import VirtualClock
from everstep.wire.values import loads_strict
from tests.fault.must_see import Unheard

T = TypeVar("T")

NOWHERE: Final = Path(":memory:")
EVER: Final = 2**62
FAILING: Final = (StepUnit, CreateUnit, CommandUnit, ClaimUnit)


class Slowness:
    """How long things take: an engine can die meanwhile, and whatever comes due comes between."""

    def __init__(self, clock: VirtualClock, chance: random.Random, latency_ms: int) -> None:
        self.latency_ms = latency_ms
        """The most that one wait takes."""
        self._clock = clock
        self._chance = chance

    async def wait(self) -> None:
        """A while, or none."""
        if self.latency_ms:
            await self._clock.sleep_until(Instant(self._clock.now() + self._chance.randrange(self.latency_ms)))


class Asked:
    """The connection, for questions."""

    def __init__(self, connection: apsw.Connection, slowness: Slowness) -> None:
        self._connection = connection
        self._slowness = slowness

    def rows(self, name: str, values: Any = None, *, within_s: float | None = None) -> list[tuple[Any, ...]]:
        """As long as it takes."""
        return list(self._connection.execute(sql(name), values))

    async def read(self, question: Callable[["Asked"], T]) -> T:
        """At one moment."""
        await self._slowness.wait()
        with translated():
            told = question(self)
        await self._slowness.wait()
        return told


class Written:
    """The ledger, without the thread of `GroupCommit`."""

    def __init__(self, ledger: Ledger, slowness: Slowness) -> None:
        self.refused = 0
        """So many commits to come are refused."""
        self.unheard = 0
        """So many are made, and nobody hears of it."""
        self.tally: Final = Tally()
        self.waiting: Final = (0, 1)
        self._ledger = ledger
        self._slowness = slowness

    async def submit(self, units: Sequence[Unit]) -> Sequence[object]:
        """One refused unit refuses all that its caller sent with it."""
        await self._slowness.wait()
        commits = any(isinstance(unit, FAILING) for unit in units)
        if commits and self.refused:
            self.refused -= 1
            raise Unavailable("the store fails")
        told = self._ledger.write(units, _nobody_waits)
        await self._slowness.wait()
        if commits and self.unheard:
            self.unheard -= 1
            raise Unheard("nobody knows whether that was written")
        refusals = [one for one in told if isinstance(one, Exception)]
        if refusals:
            raise refusals[0]
        return told

    def submit_blocking(self, unit: Unit, _timeout_s: float) -> object:
        """For whoever is not on the loop."""
        return self._ledger.write((unit,), _nobody_waits)[0]


def _nobody_waits() -> None:
    """One commit at a time."""


class Kept:
    """Payloads, and when somebody kept them last."""

    def __init__(self, clock: VirtualClock, slowness: Slowness) -> None:
        self._raw: dict[Digest, tuple[bytes, Instant]] = {}
        self._clock = clock
        self._slowness = slowness

    async def put(self, payloads: Sequence[tuple[Digest, bytes]]) -> None:
        await self._slowness.wait()
        for digest, raw in payloads:
            check_payload(digest, raw)
            self._raw[digest] = (raw, self._clock.now())
        await self._slowness.wait()

    async def get(self, digests: Sequence[Digest]) -> list[JsonValue]:
        return [loads_strict(await self.raw(digest)) for digest in digests]

    async def raw(self, digest: Digest) -> bytes:
        await self._slowness.wait()
        return self.read(digest)

    def read(self, digest: Digest) -> bytes:
        if digest not in self._raw:
            raise NotFound(f"no payload {digest}")
        return self._raw[digest][0]

    async def stale(self, before: Instant) -> list[Digest]:
        return [digest for digest, (_, at) in self._raw.items() if at < before]

    async def drop(self, digests: Sequence[Digest], before: Instant) -> int:
        gone = [digest for digest in digests if self._raw[digest][1] < before]
        for digest in gone:
            del self._raw[digest]
        return len(gone)


class Hold:
    """Everything that is open."""

    def __init__(self, clock: VirtualClock, slowness: Slowness) -> None:
        self.connection = connect(NOWHERE, write=True)
        migrate(self.connection, clock.now(), known=migrations(), backup=lambda _: None)
        self.seal = seal_with("")
        ledger = Ledger(
            NOWHERE, "power", me=WorkerId("w_sim"), fault=no_fault, seal=self.seal, halt_readers=lambda _: None
        )
        ledger.open(self.connection)
        self.written, self.asked = Written(ledger, slowness), Asked(self.connection, slowness)
        self.writes = cast("GroupCommit[Unit]", self.written)  # it has no other form in the port
        self.readers: Readers = self.asked
        self.artifacts: Payloads = Kept(clock, slowness)


class SqlInMemory(SqlStore):
    """One database; whoever opens it is its next incarnation."""

    news: Final = None

    def __init__(self, clock: VirtualClock, chance: random.Random, latency_ms: int = 0) -> None:
        super().__init__(clock)
        self.slowness = Slowness(clock, chance, latency_ms)
        self._all = Hold(clock, self.slowness)
        self._me: WorkerId | None = None

    @property
    def _hold(self) -> Hold:
        return self._all

    async def open(self, worker: port.Worker) -> None:
        """As the lock of a file proves: every other incarnation is dead."""
        connection, at = self._hold.connection, worker.started_at
        keep_kind(connection, worker)
        read(connection, "fence_workers", {"at": at, "me": worker.id, "before": EVER})
        columns = (worker.id, worker.name, worker.host, worker.pid, worker.version, at, worker.heartbeat_at)
        read(connection, "insert_worker", columns)
        self._me = worker.id

    async def close(self) -> None:
        """Mark the worker released. What was stored stays."""
        me, self._me = self._me, None
        if me is not None:
            release = StatementUnit(name="release_worker", values={"id": me, "at": self._clock.now()})
            await self._hold.writes.submit((release,))

    def announce(self, *, url: str | None = None, socket: str | None = None) -> None:
        """Nobody else could reach it."""

    async def info(self, *, whole: bool = False) -> port.Info:
        tasks, events, size_bytes = questions.counts(self._hold.asked)
        return port.Info(
            kind="sqlite",
            location=str(NOWHERE),
            schema_version=len(migrations()),
            durability="process",
            tasks=tasks,
            events=events,
            size_bytes=size_bytes,
            details={},
            commits=self._hold.written.tally.seconds,
        )

    async def check(self) -> Sequence[port.Flaw]:
        """The checker does that."""
        return ()

    # For whoever looks on

    def pauses(self, which: port.PauseFilter) -> list[port.KeptPause]:
        """At this moment."""
        return questions.list_pauses(self._hold.asked, which)

    def standing(self) -> dict[str, str]:
        """How every task stands."""
        return dict(self._hold.connection.execute("SELECT id, status FROM tasks"))

    # For whoever makes trouble

    def fail(self, draw: float) -> None:
        """One to three commits to come: refused, or made without anybody hearing of it."""
        commits = 1 + int(draw * 3)
        if int(draw * 1000) % 2:
            self._hold.written.refused = commits
        else:
            self._hold.written.unheard = commits

    def heal(self) -> None:
        """No more of that."""
        self._hold.written.refused = self._hold.written.unheard = 0

    def hurry(self) -> None:
        """From now on nothing takes time."""
        self.slowness.latency_ms = 0
