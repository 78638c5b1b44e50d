"""Credentials in the database: rows, and nothing that could be used if somebody read them."""

from collections.abc import Callable, Sequence
from typing import Any

from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.hold import Hold, Reader
from everstep.domain.access import Credential, CredentialKind
from everstep.domain.actors import ActorKind
from everstep.domain.ids import Instant
from everstep.domain.record import record


@record
class KeyUnit:
    """One named statement; its rows are the answer."""

    name: str
    values: tuple[str | int | bytes | None, ...]
    areas: tuple[str, ...] = ("key",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> tuple[tuple[Any, ...], ...]:
        return tuple(desk.rows(self.name, self.values))


class SqlKeyring:
    """The verbs of `Keyring` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def add(self, credential: Credential) -> None:
        """A new row."""
        one = credential
        await self._write(
            "insert_credential", one.id, one.kind, one.hash, one.name, one.owner, one.actor_kind, one.actor_id,
            _spelled(one.scopes), one.created_at, one.expires_at, one.last_used_at, one.parent, one.path,
        )  # fmt: skip

    async def find(self, hash: bytes) -> Credential | None:
        """By the unique index."""
        found = await self._read("find_credential", hash)
        return _credential(found[0]) if found else None

    async def take(self, hash: bytes, kind: CredentialKind) -> Credential | None:
        """Deleted in the writer's turn, so one caller gets it; who asks for nothing writes nothing."""
        if not await self._read("find_credential", hash):
            return None
        taken = await self._write("take_credential", hash, kind)
        return _credential(taken[0]) if taken else None

    async def bearers(self) -> Sequence[Credential]:
        """The oldest first."""
        return [_credential(row) for row in await self._read("list_credentials")]

    async def change(self, id: str, scopes: frozenset[str]) -> bool:
        """With what was made with it."""
        return bool(await self._write("change_credential", _spelled(scopes), id, id))

    async def revoke(self, id: str) -> bool:
        """With what was made with it."""
        return bool(await self._write("revoke_credential", id, id))

    async def use(self, id: str, at: Instant) -> None:
        """Noted."""
        await self._write("use_credential", at, id)

    async def forget(self, before: Instant) -> None:
        """Dropped."""
        await self._write("forget_credentials", before)

    async def _read(self, name: str, *values: bytes) -> list[tuple[Any, ...]]:
        def look(reader: Reader) -> list[tuple[Any, ...]]:
            return reader.rows(name, values)

        return await self._hold().readers.read(look)

    async def _write(self, name: str, *values: str | int | bytes | None) -> tuple[tuple[Any, ...], ...]:
        (answer,) = await self._hold().writes.submit((KeyUnit(name=name, values=values),))
        assert isinstance(answer, tuple)
        return answer


def _spelled(scopes: frozenset[str]) -> str:
    return " ".join(sorted(scopes))


def _credential(row: tuple[Any, ...]) -> Credential:
    return Credential(
        id=row[0],
        kind=CredentialKind(row[1]),
        hash=row[2],
        name=row[3],
        owner=row[4],
        actor_kind=ActorKind(row[5]),
        actor_id=row[6],
        scopes=frozenset(row[7].split()),
        created_at=Instant(row[8]),
        expires_at=row[9],
        last_used_at=row[10],
        parent=row[11],
        path=row[12],
    )
