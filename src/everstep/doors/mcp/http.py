"""The door on HTTP: behind our gate, which knows who asks. A session belongs to the principal that opened it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from everstep.doors.mcp.bridge import MODERN
from everstep.doors.mcp.door import McpDoor
from everstep.doors.mcp.server import make_server

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SESSION: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
SESSIONS_MAX: Final = 1024
IDLE_S: Final = 1800.0
LEAVE_S: Final = 1.0
_GONE: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
_FULL: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Too many sessions"}}'


@dataclass
class Session:
    """Whose it is, and when it was last heard of."""

    owner: str
    seen: float


class HttpDoor:
    """An ASGI app for `/mcp`."""

    def __init__(self, door: McpDoor, version: str) -> None:
        self._door = door
        self._version = version
        self._most = door.desk.limits.sessions_per_owner
        self._known: dict[bytes, Session] = {}
        self._sessions: Any = None
        self._running: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()
        self._turn = asyncio.Lock()

    async def _open(self) -> None:
        """With the first request: the SDK takes a second, which most engines never need."""
        async with self._turn:
            if self._sessions is not None:
                return
            await self._door.check()
            opened = asyncio.Event()
            self._running = asyncio.create_task(self._run(opened))
            waiting = asyncio.ensure_future(opened.wait())
            await asyncio.wait((waiting, self._running), return_when=asyncio.FIRST_COMPLETED)
            if self._running.done():
                self._running.result()

    async def close(self) -> None:
        """End every session."""
        self._door.close()
        self._leaving.set()
        if self._running is not None:
            await asyncio.wait((self._running,), timeout=LEAVE_S)
            self._running.cancel()

    async def _run(self, opened: asyncio.Event) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        server = make_server(self._door, self._version)
        sessions = StreamableHTTPSessionManager(server, session_idle_timeout=IDLE_S, max_sessions=SESSIONS_MAX)
        async with sessions.run():
            self._sessions = sessions
            opened.set()
            await self._leaving.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, by whoever the gate says; a session of somebody else is not there."""
        if self._sessions is None:
            await self._open()
        principal = scope.get("everstep.principal")
        owner = "" if principal is None else f"{principal.owner} {principal.token}"
        named = next((value for name, value in scope["headers"] if name == SESSION), None)
        known = None if named is None else self._known.get(named)
        if known is not None and known.owner != owner:
            await _refuse(send, 404, _GONE)
            return
        self._forget()
        if named is None and sum(one.owner == owner for one in self._known.values()) >= self._most and _opens(scope):
            await _refuse(send, 429, _FULL)
            return
        if known is not None:
            known.seen = time.monotonic()

        async def noting(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                for name, value in message.get("headers", ()):
                    if name.lower() == SESSION:
                        self._known.setdefault(value, Session(owner, time.monotonic()))
                if named is not None and scope["method"] == "DELETE" and message["status"] < 300:
                    self._leave(named)
            await send(message)

        await self._sessions.handle_request(scope, receive, noting)

    def _forget(self) -> None:
        """Sessions that the SDK has let go by now."""
        until = time.monotonic() - IDLE_S
        for name in [name for name, one in self._known.items() if one.seen < until]:
            self._leave(name)

    def _leave(self, session: bytes) -> None:
        self._known.pop(session, None)
        self._door.seats.leave(session.decode("latin-1"))


def _opens(scope: Scope) -> bool:
    """Whether a request without a session may open one: the newer revision has none, and says so in a header."""
    version = next((value for name, value in scope["headers"] if name == VERSION), b"")
    return scope["method"] == "POST" and version.decode("latin-1") != MODERN


async def _refuse(send: Send, status: int, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})
