"""How the door speaks to an engine: `/v1`, in this process or through the socket of whoever holds the store."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from everstep.domain.errors import Unavailable
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.record import record
from everstep.doors.api import Api, Request, split_target
from everstep.doors.api.made import MINIMAL, MINIMAL_WAIT
from everstep.doors.local.client import LocalClient
from everstep.doors.local.lines import refusal

Json: TypeAlias = dict[str, Any]
LONG_POLL_S: Final = 20
BRIEF: Final = {"prefer": MINIMAL}
"""Of a new task, nothing but its id."""


@record
class Caller:
    """A client, and on whose behalf it asks. Never human by itself."""

    owner: str
    name: str = "client"
    kind: str = "llm"

    @property
    def who(self) -> Who:
        """As the engine knows it."""
        return Who(owner=self.owner, actor=Actor(kind=ActorKind(self.kind), id=self.name, via="mcp"))


class Channel(Protocol):
    """Somebody who answers."""

    async def request(self, caller: Caller, ask: "Ask") -> tuple[int, bytes]:
        """Status and body, in JSON if there is one; a refusal is a reply too."""

    def watch(self, caller: Caller, path: str) -> AsyncIterator[Json]:
        """The frames of a stream; a refusal is raised."""


@record
class Ask:
    """One request."""

    method: str
    path: str
    body: Json | None = None
    headers: Mapping[str, str] | None = None
    stays: bool = False
    """Whether the reply to a new task can wait for what comes of it: not from an engine that may go away meanwhile."""


class OwnChannel:
    """The engine is this process."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def request(self, caller: Caller, ask: Ask) -> tuple[int, bytes]:
        """Ask the desk behind it."""
        response = await self._api.handle(_request(caller, ask))
        return response.status, response.body

    async def watch(self, caller: Caller, path: str) -> AsyncIterator[Json]:
        """Its frames."""
        async with aclosing(self._api.stream(_request(caller, Ask(method="GET", path=path)))) as lines:
            async for line in lines:
                yield json.loads(line)


def _request(caller: Caller, ask: Ask) -> Request:
    path, query = split_target(ask.path)
    headers = ask.headers or {}
    return Request(
        method=ask.method,
        path=path,
        query=query,
        headers={**headers, "prefer": MINIMAL_WAIT} if ask.stays else headers,
        body=ask.body,
        who=caller.who,
        local=True,
    )


class LocalChannel:
    """The engine is another process of the same user: one connection per request, so that waiting blocks nobody."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def request(self, caller: Caller, ask: Ask) -> tuple[int, bytes]:
        """Ask it."""
        client = self._client(caller)
        try:
            response = await client.request(ask.method, ask.path, ask.body, headers=ask.headers)
        finally:
            await client.close()
        return response.status, response.body

    async def watch(self, caller: Caller, path: str) -> AsyncIterator[Json]:
        """Its frames."""
        async with aclosing(self._client(caller).stream(path)) as frames:
            async for frame in frames:
                yield frame

    def _client(self, caller: Caller) -> LocalClient:
        return LocalClient(self._socket, actor=f"{caller.kind}:{caller.name}@mcp")


class Changing:
    """Whoever carries the store now: when it is gone, the next one, or this process."""

    def __init__(self, find: Callable[[], Awaitable[Channel]]) -> None:
        self._find = find
        self._now: Channel | None = None
        self._turn = asyncio.Lock()

    async def request(self, caller: Caller, ask: Ask) -> tuple[int, bytes]:
        """Ask; a look may be repeated, a command only if it was not heard."""
        now = await self._current(None)
        try:
            return await now.request(caller, ask)
        except Unavailable:
            if ask.method != "GET":
                raise
            return await (await self._current(now)).request(caller, ask)

    async def watch(self, caller: Caller, path: str) -> AsyncIterator[Json]:
        """Its frames, from whoever carries the store now."""
        async for frame in (await self._current(None)).watch(caller, path):
            yield frame

    async def _current(self, gone: Channel | None) -> Channel:
        async with self._turn:
            if self._now is None or self._now is gone:
                self._now = await self._find()
            return self._now


async def ask(channel: Channel, caller: Caller, what: str, body: Json | None = None) -> Json:
    """The body of a good reply to `METHOD path`; a refusal is raised."""
    method, _, path = what.partition(" ")
    return await asked(channel, caller, Ask(method=method, path=path, body=body))


async def asked(channel: Channel, caller: Caller, request: Ask) -> Json:
    """The same with headers."""
    body = json.loads(await good(channel, caller, request))
    assert isinstance(body, dict)
    return body


async def good(channel: Channel, caller: Caller, request: Ask) -> bytes:
    """The same as it came."""
    status, body = await channel.request(caller, request)
    if status >= 400:
        raise refusal(json.loads(body or b"{}"))
    return body


async def follow(channel: Channel, caller: Caller, task: str, after: int) -> AsyncGenerator[Json, None]:
    """The journal from `after + 1` on, as it grows; it is over when nobody asks on."""
    while True:
        wait = f"/v1/tasks/{task}/events?after={after}&limit=500&wait={LONG_POLL_S}"
        page = await ask(channel, caller, f"GET {wait}")
        for event in page["events"]:
            yield event
        after = max(after, int(page["next_after"]))
