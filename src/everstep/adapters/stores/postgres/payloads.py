"""Payloads by content, in the database: any process can read what any other wrote."""

from collections.abc import Callable, Sequence
from typing import cast

from everstep.adapters.stores.groupcommit import GroupCommit
from everstep.adapters.stores.journal import check_payload
from everstep.adapters.stores.postgres.readers import PgReader, PgReaders
from everstep.adapters.stores.sql.apply import COMMAND_BYTES, Unit
from everstep.adapters.stores.sql.desk import Desk
from everstep.domain.errors import NotFound, Unavailable
from everstep.domain.ids import Digest, Instant
from everstep.domain.record import record
from everstep.domain.values import JsonValue
from everstep.wire.values import digest_of, loads_strict


@record
class PayloadUnit:
    """One payload."""

    digest: Digest
    raw: bytes
    areas: tuple[str, ...] = ("artifact",)

    @property
    def size_bytes(self) -> int:
        return len(self.raw)

    def apply(self, desk: Desk) -> None:
        desk.change("put_payload", (self.digest, self.raw))


@record
class DropUnit:
    """Payloads that nobody names."""

    digests: tuple[Digest, ...]
    before: Instant
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> int:
        return desk.change("drop_payloads", ([*self.digests], self.before))


class PgPayloads:
    """Equal payloads are one row."""

    def __init__(self, readers: PgReaders, writes: Callable[[], GroupCommit[Unit]]) -> None:
        self._readers = readers
        self._writes = writes

    async def put(self, payloads: Sequence[tuple[Digest, bytes]]) -> None:
        """Durable when this returns."""
        for digest, raw in payloads:
            check_payload(digest, raw)
        if payloads:
            await self._writes().submit([PayloadUnit(digest=digest, raw=raw) for digest, raw in payloads])

    async def get(self, digests: Sequence[Digest]) -> list[JsonValue]:
        """Raises NotFound."""
        return await self._readers.read(
            lambda reader: [loads_strict(get_payload(reader, digest)) for digest in digests]
        )

    async def raw(self, digest: Digest) -> bytes:
        """As `read`, in a thread."""
        return await self._readers.read(lambda reader: get_payload(reader, digest))

    async def stale(self, before: Instant) -> list[Digest]:
        """By the clock of the database."""
        rows = await self._readers.read(lambda reader: reader.rows("stale_payloads", (before,)))
        return [Digest(digest) for (digest,) in rows]

    async def drop(self, digests: Sequence[Digest], before: Instant) -> int:
        """One that was kept again meanwhile is young."""
        if not digests:
            return 0
        (dropped,) = await self._writes().submit((DropUnit(digests=tuple(digests), before=before),))
        return cast("int", dropped)

    def read(self, digest: Digest) -> bytes:
        """The bytes of one payload, which are what their name says, or an error."""
        return self._readers.ask(lambda reader: get_payload(reader, digest))


def get_payload(reader: PgReader, digest: Digest) -> bytes:
    """The bytes of one, checked against their name; raises NotFound."""
    found = reader.rows("get_payload", (digest,))
    if not found:
        raise NotFound(f"no payload {digest}")
    raw: bytes = found[0][0]
    if digest_of(raw) != digest:
        raise Unavailable(f"the payload {digest} is damaged")
    return raw
