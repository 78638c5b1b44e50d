"""An open store: its lock, its writer, its readers and its payloads; made and let go of together."""

import asyncio
from contextlib import suppress
from pathlib import Path

from everstep.adapters.stores import forks
from everstep.adapters.stores.groupcommit import GroupCommit
from everstep.adapters.stores.sql.apply import StatementUnit, Unit
from everstep.adapters.stores.sqlite.artifacts import Artifacts
from everstep.adapters.stores.sqlite.ledger import Ledger
from everstep.adapters.stores.sqlite.lock import Lock
from everstep.adapters.stores.sqlite.migrate import migrations
from everstep.adapters.stores.sqlite.opening import Setup, alive_until, holder, prepare, take
from everstep.adapters.stores.sqlite.readers import Readers
from everstep.domain.errors import StoreError
from everstep.ports.clock import Clock
from everstep.ports.store import Worker


class Hold:
    """Everything that is open. Made by `open_store`."""

    def __init__(self, path: Path, lock: Lock, setup: Setup, worker: Worker) -> None:
        self.path = path
        self.worker = worker
        self.lock = lock
        self.readers = Readers(path)
        self.artifacts = Artifacts(setup.artifacts, setup.fault)
        self.seal = setup.seal
        self.ledger = Ledger(
            path,
            setup.durability,
            me=worker.id,
            fault=setup.fault,
            seal=setup.seal,
            halt_readers=self.readers.halt,
        )
        self.writes: GroupCommit[Unit] = GroupCommit(self.ledger)

    @property
    def schema_version(self) -> int:
        """The newest that there is: an older file was migrated."""
        return len(migrations())

    def announce(self, url: str | None, socket: str | None) -> None:
        """Say in the lock file where this engine can be reached."""
        self.lock.write(holder(self.worker, url, socket))

    async def close(self, clock: Clock) -> None:
        """A planned stop: mark the worker released, let go of everything."""
        forks.unwatch(self)
        release = StatementUnit(name="release_worker", values={"id": self.worker.id, "at": clock.now()})
        try:
            with suppress(StoreError):  # then the next engine takes this worker for dead, which is true as well
                await self.writes.submit((release,))
            await self.writes.stop()
        finally:
            await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        self.readers.close()
        self.artifacts.close()
        self.lock.release()

    def poison(self) -> None:
        """In a forked child."""
        self.writes.poison()
        self.readers.poison()
        self.artifacts.poison()
        self.ledger.poison()
        self.lock.release()


async def open_store(setup: Setup, worker: Worker, clock: Clock) -> Hold:
    """Lock, wait for a holder that another lock file hides, migrate, register; all or nothing."""
    path, lock = await asyncio.to_thread(take, setup, worker)
    try:
        while (until := await asyncio.to_thread(alive_until, path, lock)) > clock.now():
            await clock.sleep_until(until)
        connection = await asyncio.to_thread(prepare, path, lock, setup, worker)
    except BaseException:
        lock.release()
        raise
    hold = Hold(path, lock, setup, worker)
    hold.ledger.open(connection)
    hold.writes.start()
    forks.watch(hold)
    return hold
