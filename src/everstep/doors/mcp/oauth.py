"""Tokens of an OAuth server that the operator names (`mcp.oauth`), at `/mcp` alone: who asks is `issuer|sub`.

A token is a signed statement: it is held against the keys that the server publishes, and never passed on. What it does
not say it may not do; `admin` it never may.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

from everstep.domain.access import Principal
from everstep.domain.actors import Actor, ActorKind
from everstep.domain.errors import EverstepError, SettingsError
from everstep.doors.http.answer import Receive, Scope, Send
from everstep.settings import Settings

SIGNED_BY: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""With a key of the server's own; never with one that both sides know."""
MAY: Final = frozenset({"read", "write", "answer"})
NEEDED: Final = ("exp", "iss", "aud", "sub")
LEEWAY_S: Final = 30
KEYS_LAST_S: Final = 600.0
LOOK_AGAIN_S: Final = 30.0
"""How soon a key that nobody knows may make us ask for all of them again."""
PATIENCE_S: Final = 5.0
BYTES_MAX: Final = 256 * 1024
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
PLACE: Final = "/.well-known/oauth-protected-resource/mcp"
"""Where clients learn which server to ask (RFC 9728)."""


class OAuth:
    """One server, and the audience that its tokens must name: us."""

    def __init__(self, issuer: str, audience: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys: Mapping[str, Any] = {}
        self._asked_at = -KEYS_LAST_S
        self._turn = asyncio.Lock()

    async def vouch(self, token: str) -> Principal | None:
        """Whoever holds this token; None if it is not good here. Raises if that cannot be found out."""
        import jwt

        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid") or ""))
            if key is None:
                return None
            options: Any = {"require": [*NEEDED]}
            said = jwt.decode(
                token,
                key,
                algorithms=[*SIGNED_BY],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options=options,
            )
        except jwt.PyJWTError:
            return None
        subject = said["sub"]
        if not isinstance(subject, str) or not subject:
            return None
        owner = f"{self._issuer}|{subject}"
        return Principal(owner=owner, actor=Actor(kind=ActorKind.LLM, id=subject, via="mcp"), scopes=_allowed(said))

    async def _key(self, name: str) -> Any:  # noqa: ANN401 -- PyJWT's
        async with self._turn:
            age = time.monotonic() - self._asked_at
            if age >= KEYS_LAST_S or (name not in self._keys and age >= LOOK_AGAIN_S):
                self._keys = await asyncio.to_thread(_published, self._issuer)
                self._asked_at = time.monotonic()
        return self._keys.get(name)

    @property
    def challenge(self) -> str:
        """What a refusal says about where to go."""
        place = urlsplit(self._audience)
        return f'Bearer resource_metadata="{place.scheme}://{place.netloc}{PLACE}"'

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """What anybody may know about us."""
        said = {
            "resource": self._audience,
            "authorization_servers": [self._issuer],
            "scopes_supported": sorted(MAY),
            "bearer_methods_supported": ["header"],
        }
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(said).encode()})


def oauth_in(settings: Settings) -> OAuth | None:
    """The server that the settings name, if any; raises if they name half of one, or one that anybody could play."""
    issuer, audience = (str(settings.said[f"mcp.oauth.{name}"].value) for name in ("issuer", "audience"))
    if not issuer and not audience:
        return None
    for name, value in (("issuer", issuer), ("audience", audience)):
        if not _safe(value):
            raise SettingsError(
                f"`mcp.oauth.{name}` is no address that can be trusted: '{value}'",
                what_to_do="write https://…; http:// only for this machine",
            )
    return OAuth(issuer, audience)


def _safe(url: str) -> bool:
    place = urlsplit(url)
    return bool(place.netloc) and (place.scheme == "https" or (place.scheme == "http" and place.hostname in LOOPBACK))


def _allowed(said: Mapping[str, Any]) -> frozenset[str]:
    scope = said.get("scope", said.get("scp", ""))
    words = scope.split() if isinstance(scope, str) else scope if isinstance(scope, list) else ()
    return MAY.intersection(word for word in words if isinstance(word, str))


class _NoDetour(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 -- the handler's own signature
        """Whoever the operator named answers, nobody else."""


def _published(issuer: str) -> dict[str, Any]:
    """The keys that the server signs with, by name."""
    import jwt

    try:
        found = jwt.PyJWKSet.from_dict(_get(_keys_of(issuer)))
    except (OSError, ValueError, jwt.PyJWTError) as error:
        message = f"the OAuth server '{issuer}' does not say its keys"
        raise EverstepError(message, code="not_ready", what_to_do="look whether it is up, then try again") from error
    return {key.key_id or "": key for key in found.keys if key.public_key_use != "enc"}


def _keys_of(issuer: str) -> str:
    """Where its keys are, as it says itself: RFC 8414, else OpenID Connect."""
    place = urlsplit(issuer)
    path = place.path.rstrip("/")
    try:
        facts = _get(f"{place.scheme}://{place.netloc}/.well-known/oauth-authorization-server{path}")
    except (OSError, ValueError):
        facts = _get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    keys = str(facts.get("jwks_uri") or "")
    if facts.get("issuer") != issuer or not _safe(keys):
        raise ValueError("what it says of itself is not about it")
    return keys


def _get(url: str) -> dict[str, Any]:
    with build_opener(_NoDetour).open(url, timeout=PATIENCE_S) as reply:
        said = json.loads(reply.read(BYTES_MAX))
    if not isinstance(said, dict):
        raise ValueError("its answer is no object")  # noqa: TRY004 -- as one that is no JSON at all
    return said
