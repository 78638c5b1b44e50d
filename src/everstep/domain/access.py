"""Who may do what over the network: credentials, their scopes, and the principal that a door makes of one.

A credential is known by the digest of its value; the value itself is nowhere but with its holder. Rules only.
"""

import re
from enum import StrEnum
from typing import Final

from everstep.domain.actors import Actor, ActorKind, Who
from everstep.domain.ids import Instant, Millis
from everstep.domain.record import record

SCOPES: Final = ("read", "write", "answer", "admin")
"""`write` is agent mode: without it plans may be checked, but nothing is started."""
ALL_SCOPES: Final = frozenset(SCOPES)
OWNER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
HUMAN_KINDS: Final = (ActorKind.HUMAN, ActorKind.LLM, ActorKind.SERVICE)
"""Who may hold a token; `system` is the engine alone."""


class CredentialKind(StrEnum):
    """What a credential is good for."""

    TOKEN = "token"  # noqa: S105 -- its name, not its value
    """Requests, until it is revoked or expires."""
    SESSION = "session"
    """The same for somebody who signed in; it also ends when it is not used."""
    CODE = "code"
    """Once, for a session."""
    TICKET = "ticket"
    """Once, for one path, where a header cannot be sent."""


BEARERS: Final = frozenset({CredentialKind.TOKEN, CredentialKind.SESSION})
LASTS_MS: Final = {
    CredentialKind.SESSION: Millis(30 * 86_400_000),
    CredentialKind.CODE: Millis(600_000),
    CredentialKind.TICKET: Millis(60_000),
}
IDLE_MS: Final = Millis(12 * 3_600_000)
"""A session that was not used for so long is over."""


@record
class Credential:
    """One credential; `hash` is the SHA-256 of its value."""

    id: str
    kind: CredentialKind
    hash: bytes
    name: str
    owner: str
    actor_kind: ActorKind
    actor_id: str
    scopes: frozenset[str]
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    parent: str | None = None
    """The credential that it was made with, and ends with."""
    path: str | None = None

    def stands(self, at: Instant) -> bool:
        """Whether it is still good."""
        if self.expires_at is not None and at >= self.expires_at:
            return False
        idle = at - (self.last_used_at or self.created_at)
        return self.kind is not CredentialKind.SESSION or idle < IDLE_MS


@record
class Principal:
    """Who asks, on whose behalf, and what they may do; `token` is the credential that says so."""

    owner: str
    actor: Actor
    scopes: frozenset[str]
    token: str | None = None

    @property
    def who(self) -> Who:
        """Without what they may do."""
        return Who(owner=self.owner, actor=self.actor)


def principal_of(credential: Credential, via: str) -> Principal:
    """Whoever holds this credential, at that door."""
    actor = Actor(kind=credential.actor_kind, id=credential.actor_id, via=via)
    token = credential.parent if credential.kind is CredentialKind.TICKET else credential.id
    return Principal(owner=credential.owner, actor=actor, scopes=credential.scopes, token=token)
