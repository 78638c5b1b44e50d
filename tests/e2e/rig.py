"""A real HTTP server on the loopback that misbehaves as it is told and counts every call; and tools that call it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from everstep import Denied, tool

REASONS = {200: "OK", 401: "Unauthorized", 409: "Conflict", 422: "Unprocessable", 503: "Unavailable"}


class Refused(Exception):
    """What an HTTP client raises: the status, and the headers of the answer."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(f"answered {status}")
        self.status_code = status
        self.response = Answer(headers)


@dataclass
class Answer:
    headers: dict[str, str]


@dataclass
class Rig:
    """Answers by path. `tokens`: what `/private` accepts now."""

    port: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    at: dict[str, list[float]] = field(default_factory=dict)
    token: int = 0
    good: int = 1
    refresh_fails: bool = False
    before_401: asyncio.Event | None = None
    script: dict[str, list[str]] = field(default_factory=dict)
    """What a path answers, call by call; the last entry repeats."""
    never_good: bool = False
    _refused: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def refused(self, count: int) -> None:
        """Wait until so many callers were refused."""
        async with self._refused:
            await self._refused.wait_for(lambda: self.calls["/private"] >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        self.calls[path] += 1
        self.at.setdefault(path, []).append(asyncio.get_running_loop().time())
        turns = self.script.get(path, ["200"])
        word = turns[min(self.calls[path], len(turns)) - 1]
        if path == "/private":
            word = "200" if f"token: {self.good}\r\n" in head and not self.never_good else "401"
            async with self._refused:
                self._refused.notify_all()
        if word == "tarpit":
            await reader.read()  # says nothing until the caller hangs up
        elif word == "reset":
            writer.transport.abort()
        else:
            status, _, wait = word.partition(" ")
            more = f"retry-after: {wait}\r\n" if wait else ""
            writer.write(f"HTTP/1.1 {status} {REASONS[int(status)]}\r\n{more}content-length: 0\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    async def get(self, path: str, token: int = 0) -> int:
        """What any client would do, in a few lines."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nhost: rig\r\ntoken: {token}\r\n\r\n".encode())
            head = (await reader.read()).decode()
            if not head:
                raise ConnectionResetError("the server hung up")
        finally:
            writer.close()
        status, headers = int(head.split()[1]), dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
        if status >= 400:
            raise Refused(status, {name.title(): value for name, value in headers.items()})
        return status

    def tools(self) -> list[object]:
        async def refresh() -> None:
            self.calls["refresh"] += 1
            if self.before_401 is not None:
                await self.before_401.wait()
            if self.refresh_fails:
                raise RuntimeError("the refresh token has expired")
            self.token = self.good

        @tool("rig.get", effect="pure")
        async def get(path: str) -> int:
            """Ask the rig."""
            return await self.get(path)

        @tool("rig.private")
        async def private() -> int:
            """Ask the rig with a token that may have expired."""
            try:
                return await self.get("/private", self.token)
            except Refused as refused:
                raise Denied(str(refused), refresh=refresh) from refused

        return [get, private]


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """One, listening."""
    made = Rig()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
