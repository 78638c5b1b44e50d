"""From an address to a connection that may write: connect, look, register. Blocking: called from a thread."""

import json
from typing import Final

from everstep.adapters.stores.chain import Seal, seal_with
from everstep.adapters.stores.one_kind import KIND, refuse_other_kind
from everstep.adapters.stores.postgres.connect import (
    ANSWER_S,
    Connection,
    Durability,
    connect,
    read,
    translated,
    verify,
)
from everstep.adapters.stores.postgres.migrate import migrations, refuse_other
from everstep.adapters.stores.sql.moving import ARRIVING, MOVED, refuse_closed
from everstep.domain.record import record
from everstep.ports.clock import Clock
from everstep.ports.fault import Fault
from everstep.ports.store import Worker

FORGET_MS: Final = 7 * 24 * 3600 * 1000
IDLE_MS: Final = 10_000
CLOSED: Final = (MOVED, ARRIVING)


@record
class Setup:
    """What a store is told once."""

    url: str
    durability: Durability
    fault: Fault
    audit_key: str = ""
    listen_url: str = ""
    """Where hints are listened for; empty: the same address."""
    idle_ms: int = IDLE_MS
    """After so long the server ends a transaction whose worker says nothing more: its locks are others' way."""

    @property
    def seal(self) -> Seal:
        """How lines of journals are linked."""
        return seal_with(self.audit_key)


def prepare(setup: Setup, worker: Worker, clock: Clock) -> tuple[Connection, int]:
    with translated():
        connection = connect(setup.url, answer_s=None)  # while the store is being moved it waits
        try:
            verify(connection, setup.durability)
            version = refuse_other(connection, migrations())
            with connection.transaction():
                register(connection, worker, clock)
            connection.answer_s = ANSWER_S
        except BaseException:
            connection.close()
            raise
    return connection, version


def register(connection: Connection, worker: Worker, clock: Clock) -> None:
    """One more incarnation; not while the store is on its way, nor after it has gone."""
    at, age = worker.started_at, clock.now() - worker.heartbeat_at
    if worker.kind:
        read(connection, "keep_meta", (KIND, worker.kind))
        ((recorded,),) = read(connection, "get_meta", (KIND,))
        refuse_other_kind(recorded, worker)
    read(connection, "forget_workers", {"before": at - FORGET_MS})
    read(connection, "forget_batches")
    who = (worker.id, worker.name, worker.host, worker.pid, worker.version, json.dumps(worker.tools))
    read(connection, "insert_worker", (*who, at, worker.heartbeat_at, age))
    read(connection, "insert_batch", (worker.id,))  # waits while the store is held closed
    moved_to, arriving = (next((said for (said,) in read(connection, "get_meta", (key,))), None) for key in CLOSED)
    refuse_closed(moved_to, arriving)


def rejoin(setup: Setup, worker: Worker, clock: Clock) -> None:
    """Another incarnation of the same engine."""
    with translated(), connect(setup.url) as connection, connection.transaction():
        register(connection, worker, clock)
