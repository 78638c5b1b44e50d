"""What is behind the gate: the api, the event streams, other doors, the pages. It only shows the way.

an event path, asked for as a WebSocket or with `Accept: text/event-stream`   ->  `streams`
every other route of the table                                                ->  the api
`/mcp` and whatever else is mounted                                           ->  its own app, scope unchanged
a page of the dashboard                                                       ->  `pages`
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from everstep.domain.access import Principal
from everstep.domain.errors import EverstepError, Validation
from everstep.doors.api import Api, Request, split_target
from everstep.doors.api.routes import Match
from everstep.doors.http.answer import App, Receive, Scope, Send, send_parts, send_response
from everstep.doors.http.body import headers_of, read_json
from everstep.doors.http.gate import Gate, Mount, mounted, path_of
from everstep.doors.http.names import LOOPBACK, names_of
from everstep.doors.http.rate import Turnstile
from everstep.facade.access import AccessDesk
from everstep.settings import Settings

EVENT_STREAM = "text/event-stream"


class Pages(Protocol):
    """What a browser gets before anybody has signed in."""

    def holds(self, path: str) -> bool: ...
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Behind:
    """Shows visitors the way."""

    def __init__(
        self, api: Api, settings: Settings, *, streams: App | None, mounts: Mapping[str, Mount], pages: Pages | None
    ) -> None:
        self._api = api
        self._timeout_s = settings.serve.request_timeout_ms / 1000
        self._body_bytes_max = settings.limits.body_bytes
        self._streams = streams
        self._mounts = mounts
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found: Match | None = scope["everstep.match"]
        mount = mounted(self._mounts, path_of(scope)) if found is None else None
        if mount is not None:
            await mount.app(scope, receive, send)
        elif found is None:
            assert self._pages is not None
            await self._pages(scope, receive, send)
        elif self._streams is not None and found.route.streams and wants_stream(scope):
            await self._streams(scope, receive, send)
        elif scope["type"] == "websocket":
            raise Validation("there is no stream at this path")
        else:
            await self._ask(scope, receive, send)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._api.handle(await self.read(scope, receive))
        except TimeoutError:
            raise EverstepError(
                f"this took longer than {self._timeout_s:g} s",
                code="overloaded",
                what_to_do="look whether it was done all the same, then try again",
            ) from None
        if response.parts is None:
            await send_response(response, send)
        else:
            await send_parts(response, receive, send)

    async def read(self, scope: Scope, receive: Receive) -> Request:
        """The request as the api takes it; raises what is wrong with its body."""
        request = request_of(scope)
        body = await read_json(dict(request.headers), receive, self._body_bytes_max)
        return Request(
            method=request.method,
            path=request.path,
            query=request.query,
            headers=request.headers,
            body=body,
            who=request.who,
            principal=request.principal,
        )


def request_of(scope: Scope) -> Request:
    """A request behind the gate, without its body: what a stream needs."""
    principal: Principal | None = scope["everstep.principal"]
    _, query = split_target(f"?{scope['query_string'].decode('latin-1')}")
    return Request(
        method=scope.get("method", "GET"),
        path=path_of(scope),
        query=query,
        headers=headers_of(scope),
        body=None,
        who=None if principal is None else principal.who,
        principal=principal,
    )


def wants_stream(scope: Scope) -> bool:
    """A WebSocket, or frames as server-sent events."""
    return scope["type"] == "websocket" or EVENT_STREAM in headers_of(scope).get("accept", "")


def make_app(
    api: Api,
    access: AccessDesk,
    settings: Settings,
    *,
    streams: App | None = None,
    mounts: Mapping[str, Mount] | None = None,
    pages: Pages | None = None,
) -> Gate:
    """The gate, with everything behind it."""
    serve, doors = settings.serve, mounts or {}
    hosts = [*serve.allowed_hosts, *([] if serve.host in LOOPBACK else [serve.host])]
    secure = serve.behind_tls_proxy or serve.tls_cert is not None
    return Gate(
        Behind(api, settings, streams=streams, mounts=doors, pages=pages),
        access=access,
        names=names_of(hosts, serve.allowed_origins, secure=secure),
        turnstile=Turnstile(serve.rate, time.monotonic),
        body_bytes_max=settings.limits.body_bytes,
        mounts=doors,
        is_page=pages.holds if pages is not None else lambda _: False,
    )
