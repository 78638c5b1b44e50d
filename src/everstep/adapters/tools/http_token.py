"""Tokens that run out: fetched from a token endpoint with the operator's secret (OAuth 2.0), and again when refused.

The secret is a refresh token, or `client:password` of a client. What is fetched lives in memory only.
"""

import asyncio
import base64
import json
from collections import defaultdict
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from everstep.adapters.net import Asked, Client, Request
from everstep.adapters.tools.http_answer import judge
from everstep.domain.redact import BYTES_MIN
from everstep.ports.tool import Misconfigured

_CONFIGURED: Final = Asked(use="write", literal=True, configured=True, came_from="the configuration")


class Tokens:
    """One per place and secret; whoever finds one being fetched waits for it."""

    def __init__(self, client: Client, learn: Callable[[str, str], None]) -> None:
        """`learn` keeps what was fetched out of everything that is written down."""
        self._client = client
        self._learn = learn
        self._known: dict[tuple[str, str], str] = {}
        self._renewed: dict[tuple[str, str], str] = {}
        """Secrets that an endpoint has replaced."""
        self._fetching: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, url: str, secret: str) -> str:
        """The one in force."""
        await self.renew(url, secret, None)
        return self._known[url, secret]

    async def renew(self, url: str, secret: str, refused: str | None) -> None:
        """A new one in the place of `refused`, unless somebody has fetched it already."""
        key = (url, secret)
        async with self._fetching[key]:
            if self._known.get(key) == refused:
                self._known[key] = await self._fetched(key)

    async def _fetched(self, key: tuple[str, str]) -> str:
        url, secret = key
        client, colon, _ = secret.partition(":")
        headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
        form = {"grant_type": "refresh_token", "refresh_token": self._renewed.get(key, secret)}
        if colon and client:
            form = {"grant_type": "client_credentials"}
            headers.append(("Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}"))
        request = Request(
            method="POST",
            url=url,
            asked=_CONFIGURED,
            headers=tuple(headers),
            body=urlencode(form).encode(),
            max_bytes=65_536,
            redirects=0,
        )
        reply = await self._client.send(request)
        judge(reply, None)
        try:
            said = json.loads(reply.body)
            token, following = said["access_token"], said.get("refresh_token")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Misconfigured(f"{url} gave no access_token", code="http_token") from None
        for one in (token, following):
            if isinstance(one, str) and len(one.encode()) >= BYTES_MIN:
                self._learn("token", one)
        if not isinstance(token, str) or len(token.encode()) < BYTES_MIN:
            raise Misconfigured(f"{url} gave an access_token that is none", code="http_token")
        if isinstance(following, str):
            self._renewed[key] = following
        return token
