"""Keyring: the credentials that the store keeps, by the digest of their values. No value ever comes here."""

from collections.abc import Sequence
from typing import Protocol

from everstep.domain.access import Credential, CredentialKind
from everstep.domain.ids import Instant


class Keyring(Protocol):
    """The verbs. Every write is durable when its call returns."""

    async def add(self, credential: Credential) -> None:
        """Keep a new one."""

    async def find(self, hash: bytes) -> Credential | None:
        """By the digest of its value; expired ones too."""

    async def take(self, hash: bytes, kind: CredentialKind) -> Credential | None:
        """The same, and it is gone: of those who ask at the same time, one gets it."""

    async def bearers(self) -> Sequence[Credential]:
        """Tokens and sessions, the oldest first."""

    async def change(self, id: str, scopes: frozenset[str]) -> bool:
        """Give one other scopes, and what was made with it too; whether there is such a one."""

    async def revoke(self, id: str) -> bool:
        """Forget one, and what was made with it; whether there was such a one."""

    async def use(self, id: str, at: Instant) -> None:
        """It was used."""

    async def forget(self, before: Instant) -> None:
        """Drop what expired before this time."""
