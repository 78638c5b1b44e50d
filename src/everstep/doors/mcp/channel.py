"""How the door speaks to an engine: `/v1`, in this process or through the socket of whoever holds the store."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from everstep.domain.errors import Unavailable
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.record import record
from everstep.doors.api import Api, Request, split_target
from everstep.doors.local import LocalClient, refusal

Json: TypeAlias = dict[str, Any]
LONG_POLL_S: Final = 20


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

    async def request(self, caller: Caller, ask: "Ask") -> tuple[int, Any]:
        """Status and body; a refusal is a reply too."""


@record
class Ask:
    """One request."""

    method: str
    path: str
    body: Json | None = None
    headers: Mapping[str, str] | None = None


class OwnChannel:
    """The engine is this process."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def request(self, caller: Caller, ask: Ask) -> tuple[int, Any]:
        """Ask the desk behind it."""
        path, query = split_target(ask.path)
        request = Request(
            method=ask.method,
            path=path,
            query=query,
            headers=ask.headers or {},
            body=ask.body,
            who=caller.who,
            local=True,
        )
        response = await self._api.handle(request)
        return response.status, json.loads(response.body) if response.body else None


class LocalChannel:
    """The engine is another process of the same user: one connection per request, so that waiting blocks nobody."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def request(self, caller: Caller, ask: Ask) -> tuple[int, Any]:
        """Ask it."""
        client = LocalClient(self._socket, actor=f"{caller.kind}:{caller.name}@mcp")
        try:
            response = await client.request(ask.method, ask.path, ask.body, headers=ask.headers)
        finally:
            await client.close()
        return response.status, json.loads(response.body) if response.body else None


class Changing:
    """Whoever carries the store now: when it is gone, the next one, or this process."""

    def __init__(self, find: Callable[[], Awaitable[Channel]]) -> None:
        self._find = find
        self._now: Channel | None = None
        self._turn = asyncio.Lock()

    async def request(self, caller: Caller, ask: Ask) -> tuple[int, Any]:
        """Ask; a look may be repeated, a command only if it was not heard."""
        now = await self._current(None)
        try:
            return await now.request(caller, ask)
        except Unavailable:
            if ask.method != "GET":
                raise
            return await (await self._current(now)).request(caller, ask)

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
    status, body = await channel.request(caller, request)
    if status >= 400:
        raise refusal(body or {})
    assert isinstance(body, dict)
    return body


async def follow(channel: Channel, caller: Caller, task: str, after: int) -> AsyncIterator[Json]:
    """The journal from `after + 1` on, as it grows; it is over when nobody asks on."""
    while True:
        wait = f"/v1/tasks/{task}/events?after={after}&limit=500&wait={LONG_POLL_S}"
        page = await ask(channel, caller, f"GET {wait}")
        for event in page["events"]:
            yield event
        after = max(after, int(page["next_after"]))
