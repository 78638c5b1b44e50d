"""Tasks that go and workers that came, in the database."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Final, cast

from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.handles import WithHandles
from everstep.adapters.stores.sql.hold import Hold, Reader
from everstep.adapters.stores.sql.keyring import SqlKeyring
from everstep.adapters.stores.sql.marks import WithMarks
from everstep.adapters.stores.sql.questions import meta
from everstep.domain.ids import Instant, TaskId, WorkerId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.ports.housekeeping import KeptWorker
from everstep.wire.times import maybe_instant

COPIED: Final = "copied_at"
"""In `meta` of a copy: what happened after that time is unknown to it."""


@record
class ForgetCopyUnit:
    """A copy that was looked at is a store like any other."""

    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        desk.change("forget_meta", (COPIED,))


DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")


@record
class DeleteUnit:
    """A task and all that is known of it."""

    owner: str
    task: TaskId
    key_until: Instant
    areas: tuple[str, ...] = ("retention",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> bool:
        for (num,) in desk.rows("find_ended", (self.task, self.owner)):
            desk.change("delete_pauses", (num,))
            desk.change("delete_progress", (self.task,))
            desk.change("delete_checkpoints", (self.task,))
            desk.change("delete_begun", (self.task,))
            desk.forget_journal(num)
            for (key,) in desk.rows("delete_task", (num,)):
                if key is not None:
                    desk.change("spend_key", (self.owner, key, self.key_until))
            return True
        return False


def _named(reader: Reader) -> frozenset[str]:
    """Every digest in a line that names a payload, and in every checkpoint."""
    return frozenset(name for (body,) in reader.rows("naming_payloads") for name in DIGEST.findall(body))


class SqlHousekeeping:
    """The verbs of `Housekeeping` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def delete(self, owner: str, task: TaskId, key_until: Instant) -> bool:
        """In one transaction."""
        (done,) = await self._hold().writes.submit((DeleteUnit(owner=owner, task=task, key_until=key_until),))
        return cast("bool", done)

    async def ended(self, status: TaskStatus, before: Instant, limit: int) -> Sequence[tuple[str, TaskId]]:
        """Whose tasks may go."""
        found = await self._hold().readers.read(lambda reader: reader.rows("list_ended", (status, before, limit)))
        return [(owner, TaskId(task)) for owner, task in found]

    async def copied_at(self) -> Instant | None:
        """What the copy says of itself."""
        return maybe_instant(await self._hold().readers.read(lambda reader: meta(reader, COPIED)))

    async def forget_copy(self) -> None:
        """In its turn among the commits."""
        await self._hold().writes.submit((ForgetCopyUnit(),))

    async def collect(self, before: Instant) -> int:
        """What is old is looked for in every journal; what is kept while we look is not old any more."""
        hold = self._hold()
        old = await hold.artifacts.stale(before)
        named = await hold.readers.read(_named) if old else frozenset[str]()
        return await hold.artifacts.drop([digest for digest in old if digest not in named], before)

    async def workers(self) -> Sequence[KeptWorker]:
        """The newest first."""
        found = await self._hold().readers.read(lambda reader: reader.rows("list_workers"))
        return [
            KeptWorker(
                id=WorkerId(worker),
                name=name,
                host=host,
                version=version,
                heartbeat_at=Instant(heartbeat_at),
                gone=bool(gone),
                tasks=tasks,
                tools=tuple(json.loads(tools)),
            )
            for worker, name, host, version, heartbeat_at, gone, tasks, tools in found
        ]


class WithKeeping(WithHandles, WithMarks):
    """A store with credentials and housekeeping."""

    @property
    def keyring(self) -> SqlKeyring:
        """Tokens, and what is made with them."""
        return SqlKeyring(lambda: self._hold)

    @property
    def housekeeping(self) -> SqlHousekeeping:
        """Tasks that go, workers that came."""
        return SqlHousekeeping(lambda: self._hold)
