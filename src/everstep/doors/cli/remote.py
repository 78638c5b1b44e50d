"""An engine that is served elsewhere: `/v1` over HTTP, its streams by the client that comes back by itself.

What only the local door may say is left out: a plan that travels is nobody's word but the sender's.
"""

from collections.abc import AsyncIterator
from typing import Any

from everstep.client import Client
from everstep.domain.errors import EverstepError, NotAllowed, Unavailable
from everstep.doors.api import split_target
from everstep.doors.api.routes import match
from everstep.doors.cli.talk import Ask, Json, Reply
from everstep.doors.local.lines import refusal
from everstep.doors.token_file import read_token
from everstep.settings import Settings

TIMEOUT_S = 35.0


class RemoteEngine:
    """The engine behind a URL."""

    own = False

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._http: Any = None

    async def request(self, asking: Ask) -> Reply:
        """Ask it; raises Unavailable where nobody answers."""
        import httpx2

        path, _ = split_target(asking.path)
        local = match(asking.method, path).route.local
        body = None if asking.body is None else {name: one for name, one in asking.body.items() if name not in local}
        try:
            reply = await self._opened().request(
                asking.method, asking.path, json=body, headers=dict(asking.headers or {})
            )
            said: Json = reply.json() if reply.content else {}
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise self._gone() from error
        return Reply(status=reply.status_code, body=said)

    async def parts(self, path: str) -> AsyncIterator[str]:
        """A long reply, as it comes."""
        import httpx2

        try:
            async with self._opened().stream("GET", path) as reply:
                if reply.status_code >= 400:
                    await reply.aread()
                    raise refusal(reply.json())
                async for part in reply.aiter_text():
                    yield part
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._gone() from error

    async def stream(self, path: str) -> AsyncIterator[Json]:
        """Its frames, over cuts and restarts."""
        target, query = split_target(path)
        after = query.get("after")
        async with Client(self._url, token=self._token) as client:
            frames = client.frames(
                match("GET", target).params.get("task"),
                int(after) if after is not None and after.isdecimal() else after,
                types=query.get("types"),
                until_end=query.get("until") == "end",
            )
            async for frame in frames:
                yield frame

    def _opened(self) -> Any:  # noqa: ANN401 -- imported when needed
        import httpx2

        if self._http is None:
            headers = {"authorization": f"Bearer {self._token}"}
            self._http = httpx2.AsyncClient(base_url=self._url, headers=headers, timeout=TIMEOUT_S)
        return self._http

    def _gone(self) -> Unavailable:
        return Unavailable(
            f"nobody answers at {self._url}", what_to_do="see whether it is served there, and `server` is right"
        )

    def carry(self, task: str) -> None:
        """It knows itself what to carry."""

    async def close(self) -> None:
        """Hang up."""
        opened, self._http = self._http, None
        if opened is not None:
            await opened.aclose()


def open_remote(settings: Settings) -> RemoteEngine:
    """The server that the settings name, with the token that was given; raises NotAllowed where there is none."""
    if not settings.server.startswith(("http://", "https://")):
        raise EverstepError(
            f"'{settings.server}' is no address of a server",
            code="bad_request",
            what_to_do=f"with what it speaks: https://{settings.server}, on this machine http://",
        )
    token = settings.token or read_token(settings.token_path)
    if token is None:
        raise NotAllowed(
            f"no token for {settings.server}: there is no file {settings.token_path}",
            what_to_do="set EVERSTEP_TOKEN, or name a file that holds it: --token-file FILE",
        )
    return RemoteEngine(settings.server, token)
