"""What others have written: LISTEN brings a hint at once, and whoever cannot listen looks more often.

The connection that listens keeps a state, so it must reach the database itself (`engine.listen_dsn` behind pgbouncer).
Whether it does is tried, not believed: a hint of our own has to come back.
"""

import asyncio
import random
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import psycopg

from everstep.adapters.stores.groupcommit import GroupCommit
from everstep.adapters.stores.postgres.connect import Connection, connect, read
from everstep.adapters.stores.postgres.readers import PgReader, PgReaders
from everstep.adapters.stores.postgres.slots import PgSlots
from everstep.adapters.stores.sql.apply import Unit
from everstep.domain.errors import StoreError
from everstep.domain.ids import ELSEWHERE, Instant, Seq, TaskId, WorkerId
from everstep.ports.news import Heard, Unclaimed
from everstep.ports.worker import Worker

AGAIN_S: Final = 5.0
"""Between two tries to listen."""
PROOF_S: Final = 5.0
"""In which our own hint has to come back."""


class PgNews:
    """Lives on the engine's loop."""

    def __init__(
        self,
        url: str,
        readers: PgReaders,
        rejoin: Callable[[Worker], None],
        *,
        refused: Callable[[], int],
        writes: Callable[[], GroupCommit[Unit]],
    ) -> None:
        self.slots: Final = PgSlots(writes)
        self._url = url
        self._readers = readers
        self._rejoin = rejoin
        self._refused = refused
        self._connection: Connection | None = None
        self._changing = threading.Lock()
        self._closed = False
        self._listening = False
        self._proof = ""
        self._heard: set[TaskId] = set()
        self._wake = asyncio.Event()
        self._hints: dict[TaskId, None] = {}
        self._telling: asyncio.Task[None] | None = None
        self._attending: asyncio.Task[None] | None = None

    # --- what engines call ---

    def tell(self, task: TaskId) -> None:
        """Together with what else is to be told just now."""
        self._hints[task] = None
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    async def wait(self, within_s: float) -> Heard:
        """About that long."""
        if self._attending is None:
            self._attending = asyncio.create_task(self._attend())
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s * random.uniform(0.8, 1.2)):  # noqa: S311 -- no secret
                await self._wake.wait()
        self._wake.clear()
        heard, self._heard = frozenset(self._heard), set()
        return Heard(tasks=heard, listening=self._listening)

    async def told(self, worker: WorkerId | None) -> Mapping[TaskId, int]:
        """By the partial index of what is held."""
        if worker is None:
            found = await self._readers.read(lambda reader: reader.rows("told_elsewhere", (ELSEWHERE,)))
        else:
            found = await self._readers.read(lambda reader: reader.rows("told_tasks", (worker,)))
        return {TaskId(task): times for task, times in found}

    async def heads(self, tasks: Collection[TaskId]) -> Mapping[TaskId, Seq]:
        """In one question."""
        found = await self._readers.read(lambda reader: reader.rows("heads_since", (sorted(tasks),)))
        return {TaskId(task): Seq(seq) for task, seq in found}

    async def unclaimed(self, before: Instant) -> Sequence[Unclaimed]:
        """By the partial index of what waits, against what the living say they can call."""
        found = await self._readers.read(lambda reader: reader.rows("unclaimed_tasks", (before,)))
        return [Unclaimed(task=TaskId(task), owner=owner, missing=tuple(missing)) for task, owner, missing in found]

    @property
    def refused(self) -> int:
        """As the writer counts them."""
        return self._refused()

    async def rejoin(self, worker: Worker) -> None:
        """In the same process, with the same doors."""
        await asyncio.to_thread(self._rejoin, worker)

    async def close(self) -> None:
        """No more news."""
        with self._changing:
            self._closed = True
        for task in (self._telling, self._attending):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._hang_up()

    # --- telling ---

    async def _tell(self) -> None:
        while self._hints:
            hints, self._hints = sorted(self._hints), {}
            with suppress(StoreError):  # a hint that is lost is found by looking
                await self._readers.read(partial(_tell, hints=hints))
        self._telling = None

    # --- listening ---

    async def _attend(self) -> None:
        """Connect, and connect again."""
        while True:
            if self._connection is None:
                with suppress(psycopg.Error, StoreError):
                    await self._listen()
            await asyncio.sleep(AGAIN_S)

    async def _listen(self) -> None:
        await asyncio.to_thread(self._connect)
        connection = self._connection
        if connection is None:
            return
        asyncio.get_running_loop().add_reader(connection.fileno(), self._receive)
        self._proof = secrets.token_hex(8)
        await self._readers.read(lambda reader: reader.rows("notify", (self._proof,)))
        await asyncio.sleep(PROOF_S)
        if not self._listening:  # a pooler in between: what we hear is somebody else's
            self._hang_up()

    def _connect(self) -> None:
        """In a thread, which nobody may wait for any more when it is done."""
        connection = _listening_to(self._url)
        with self._changing:
            if not self._closed:
                self._connection = connection
                return
        connection.close()

    def _receive(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            connection.pgconn.consume_input()
        except psycopg.OperationalError:
            self._hang_up()
            return
        while (hint := connection.pgconn.notifies()) is not None:
            self._hear(hint.extra.decode())

    def _hear(self, text: str) -> None:
        if text == self._proof:
            self._listening = True
            return
        tasks = [TaskId(word) for word in text.split() if word.startswith("t_")]
        if tasks:  # or else somebody else has tried whether it hears itself
            self._heard.update(tasks)
            self._wake.set()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        self._listening = False
        if connection is not None:
            with suppress(psycopg.Error, OSError, ValueError):
                asyncio.get_running_loop().remove_reader(connection.fileno())
            with suppress(psycopg.Error):
                connection.close()


def _tell(reader: PgReader, hints: list[TaskId]) -> None:
    reader.rows("tell", {"tasks": hints}, writes=True)


def _listening_to(url: str) -> Connection:
    connection = connect(url)
    try:
        ((channel,),) = read(connection, "channel")
        connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
    except BaseException:
        connection.close()
        raise
    return connection
