"""An open store: its writer, its readers, its payloads and its beats; made and let go of together."""

import asyncio
from contextlib import suppress

from everstep.adapters.stores.groupcommit import GroupCommit
from everstep.adapters.stores.postgres.connect import place_of
from everstep.adapters.stores.postgres.ledger import PgLedger
from everstep.adapters.stores.postgres.news import PgNews
from everstep.adapters.stores.postgres.opening import Setup, prepare, rejoin
from everstep.adapters.stores.postgres.payloads import PgPayloads
from everstep.adapters.stores.postgres.pulse import Beats
from everstep.adapters.stores.postgres.readers import PgReaders
from everstep.adapters.stores.sql.apply import StatementUnit, Unit
from everstep.domain.errors import StoreError
from everstep.ports.clock import Clock
from everstep.ports.store import Worker


class Hold:
    """Everything that is open. Made by `open_store`."""

    def __init__(self, setup: Setup, worker: Worker, schema_version: int, clock: Clock) -> None:
        self._setup = setup
        self._clock = clock
        self.place = place_of(setup.url)
        self.worker = worker
        self.schema_version = schema_version
        self.seal = setup.seal
        self.readers = PgReaders(setup.url)
        self.beats = Beats(setup.url)
        self.ledger = PgLedger(setup, worker.id)
        self.writes: GroupCommit[Unit] = GroupCommit(self.ledger)
        self.artifacts = PgPayloads(self.readers, lambda: self.writes)
        self.news = PgNews(
            setup.listen_url or setup.url,
            self.readers,
            self._rejoin,
            refused=lambda: self.ledger.refused,
            writes=lambda: self.writes,
        )

    def _rejoin(self, worker: Worker) -> None:
        rejoin(self._setup, worker, self._clock)
        self.worker = worker
        self.ledger.become(worker.id)

    async def close(self) -> None:
        """A planned stop: mark the worker released, let go of everything."""
        release = StatementUnit(name="release_worker", values={"id": self.worker.id, "at": self._clock.now()})
        await self.news.close()
        try:
            with suppress(StoreError):  # then the others take this worker for dead, which is true as well
                await self.writes.submit((release,))
            await self.writes.stop()
        finally:
            await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        self.readers.close()
        self.beats.close()


async def open_store(setup: Setup, worker: Worker, clock: Clock) -> Hold:
    """Connect, verify, register; all or nothing."""
    connection, version = await asyncio.to_thread(prepare, setup, worker, clock)
    hold = Hold(setup, worker, version, clock)
    hold.ledger.open(connection)
    hold.writes.start()
    return hold
