"""AccessDesk: credentials for people and programs. Who asks is found here, and nowhere else.

A value is drawn, shown once and forgotten; what is kept is its digest. What was found is believed for a moment
(`BELIEVED_MS`), so that a request costs no read; a revocation is obeyed at once here, and after that moment elsewhere.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from everstep.domain.access import (
    BEARERS,
    HUMAN_KINDS,
    LASTS_MS,
    OWNER,
    SCOPES,
    Credential,
    CredentialKind,
    Principal,
    principal_of,
)
from everstep.domain.actors import ActorKind
from everstep.domain.errors import NotFound, StoreError, Validation
from everstep.domain.ids import Instant, Millis
from everstep.domain.record import record
from everstep.engine.kit import Kit

PREFIX: Final = "es_"
BELIEVED_MS: Final = 2_000
BELIEVED_MAX: Final = 10_000
CODE_BYTES: Final = 16
"""Enough for what is good once, and for minutes."""
LASTS_MAX_MS: Final = 3_650 * 86_400_000
NOTED_MS: Final = 60_000
"""How exactly it is known when a credential was used last."""


@record
class NewToken:
    """A token somebody asks for."""

    name: str
    owner: str
    actor_kind: ActorKind
    actor_id: str
    scopes: frozenset[str]
    expires_in_ms: Millis | None = None


@record
class Issued:
    """A new credential, and its value: the only time it is seen."""

    credential: Credential
    value: str


class AccessDesk:
    """Credentials of one store."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._believed: dict[bytes, tuple[Credential, Instant]] = {}

    # Who asks

    async def authenticate(self, value: str, via: str = "http") -> Principal | None:
        """Whose token this is; None if it is nobody's, or not any more."""
        now = self._kit.clock.now()
        known_by = digest(value)
        credential, seen = self._believed.get(known_by, (None, Instant(0)))
        if credential is None or not 0 <= now - seen < BELIEVED_MS:
            credential = await self._kit.store.keyring.find(known_by)
            if credential is None or not compare_digest(credential.hash, known_by):
                self._believed.pop(known_by, None)
                return None
            self._believe(credential, now)
        if credential.kind not in BEARERS or not credential.stands(now):
            return None
        await self._note(credential, now)
        return principal_of(credential, via)

    async def standing(self) -> Mapping[str, Credential]:
        """Every token and session that is good now, by id."""
        now = self._kit.clock.now()
        return {one.id: one for one in await self._kit.store.keyring.bearers() if one.stands(now)}

    def _believe(self, credential: Credential, now: Instant) -> None:
        if len(self._believed) >= BELIEVED_MAX:
            self._believed.clear()
        self._believed[credential.hash] = (credential, now)

    async def _note(self, credential: Credential, now: Instant) -> None:
        if now - (credential.last_used_at or 0) < NOTED_MS:
            return
        self._believe(replace(credential, last_used_at=now), now)
        with suppress(StoreError):  # a full disk is no reason not to look
            await self._kit.store.keyring.use(credential.id, now)

    # Tokens

    async def issue(self, wanted: NewToken, *, value: str | None = None) -> Issued:
        """A new token; raises Validation. `value`: one that was drawn before."""
        check(wanted)
        now = self._kit.clock.now()
        expires = None if wanted.expires_in_ms is None else Instant(now + wanted.expires_in_ms)
        return await self._add(
            Credential(
                id=self._kit.entropy.new_id("k"),
                kind=CredentialKind.TOKEN,
                hash=b"",
                name=wanted.name,
                owner=wanted.owner,
                actor_kind=wanted.actor_kind,
                actor_id=wanted.actor_id,
                scopes=wanted.scopes,
                created_at=now,
                expires_at=expires,
            ),
            value or self.draw(),
        )

    def draw(self) -> str:
        """A value nobody knows."""
        return PREFIX + spelled(self._kit.entropy.secret())

    async def list(self) -> Sequence[Credential]:
        """Tokens and sessions that are good now."""
        return [*(await self.standing()).values()]

    async def change(self, id: str, scopes: frozenset[str]) -> Credential:
        """Other scopes for a token; raises NotFound."""
        check_scopes(scopes)
        found = await self._kit.store.keyring.change(id, scopes)
        self._believed.clear()
        if not found:
            raise no_token()
        return (await self.standing())[id]

    async def revoke(self, id: str) -> None:
        """A token, and all that was made with it, is good for nothing; raises NotFound."""
        found = await self._kit.store.keyring.revoke(id)
        self._believed.clear()
        if not found:
            raise no_token()
        self._kit.sink.note("token revoked", token=id)

    # What is made with a token

    async def new_code(self, principal: Principal) -> Issued:
        """Good once, for a session that may do what this principal may."""
        return await self._made(CredentialKind.CODE, principal)

    async def open_session(self, code: str) -> Issued | None:
        """A session for a code; None if the code is wrong, used or too old."""
        taken = await self._take(code, CredentialKind.CODE)
        if taken is None:
            return None
        principal = replace(principal_of(taken, "http"), token=taken.parent)
        return await self._made(CredentialKind.SESSION, principal)

    async def new_ticket(self, principal: Principal, path: str) -> Issued:
        """Good once, at this path."""
        return await self._made(CredentialKind.TICKET, principal, path)

    async def redeem(self, ticket: str, path: str, via: str = "http") -> Principal | None:
        """Who came with this ticket; None if it is wrong, used, too old or for another path."""
        taken = await self._take(ticket, CredentialKind.TICKET)
        if taken is None or taken.path != path:
            return None
        if taken.parent is not None and taken.parent not in await self.standing():
            return None
        return principal_of(taken, via)

    async def _made(self, kind: CredentialKind, principal: Principal, path: str | None = None) -> Issued:
        now = self._kit.clock.now()
        await self._kit.store.keyring.forget(now)
        return await self._add(
            Credential(
                id=self._kit.entropy.new_id("k"),
                kind=kind,
                hash=b"",
                name=kind.value,
                owner=principal.owner,
                actor_kind=principal.actor.kind,
                actor_id=principal.actor.id,
                scopes=principal.scopes,
                created_at=now,
                expires_at=Instant(now + LASTS_MS[kind]),
                parent=principal.token,
                path=path,
            ),
            self.draw() if kind in BEARERS else spelled(self._kit.entropy.secret()[:CODE_BYTES]),
        )

    async def _add(self, credential: Credential, value: str) -> Issued:
        kept = replace(credential, hash=digest(value))
        await self._kit.store.keyring.add(kept)
        return Issued(credential=kept, value=value)

    async def _take(self, value: str, kind: CredentialKind) -> Credential | None:
        taken = await self._kit.store.keyring.take(digest(value), kind)
        return taken if taken is not None and taken.stands(self._kit.clock.now()) else None


def spelled(secret: bytes) -> str:
    """Fit for a URL."""
    return urlsafe_b64encode(secret).decode().rstrip("=")


def digest(value: str) -> bytes:
    """What is kept of a value."""
    return sha256(value.encode(errors="surrogatepass")).digest()


def check(wanted: NewToken) -> None:
    """Raises Validation."""
    for field, value in (("name", wanted.name), ("owner", wanted.owner)):
        if not OWNER.fullmatch(value):
            raise Validation(f"'{field}' must be 1 to 128 letters, digits, '.', '_', '@', '-'")
    if wanted.actor_kind not in HUMAN_KINDS or not OWNER.fullmatch(wanted.actor_id):
        raise Validation(f"'actor' has a kind ({', '.join(HUMAN_KINDS)}) and an id")
    if wanted.expires_in_ms is not None and not 0 < wanted.expires_in_ms <= LASTS_MAX_MS:
        raise Validation("'expires_in' must be more than 0 and at most ten years")
    check_scopes(wanted.scopes)


def check_scopes(scopes: frozenset[str]) -> None:
    """Raises Validation for a word that is no scope; none at all is no token."""
    if not scopes or not scopes <= set(SCOPES):
        raise Validation(f"'scopes' takes some of {', '.join(SCOPES)}")


def no_token() -> NotFound:
    """The refusal of an id that is no token's."""
    return NotFound("there is no such token", what_to_do="list them: everstep token ls")
