"""Servers on the loopback that behave badly on purpose, for trying tools against real sockets.

    async with HttpRig() as rig:
        rig.on("/flaky", [answer(503), answer(200, b"ok")])
        ... rig.url("/flaky") ... rig.count("/flaky")

Scripts go answer by answer, the last one repeats. Every request and every connection is counted.
"""

import asyncio
import gzip
import json
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

from everstep.domain.values import JsonValue

Writer: TypeAlias = asyncio.StreamWriter
Behaviour: TypeAlias = Callable[["Asked", Writer], Awaitable[bool]]
"""Answers one request; False: the connection is not used again."""


@dataclass(frozen=True)
class Asked:
    """One request, as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    connection: int


def answer(status: int = 200, body: bytes | JsonValue = b"", **headers: str) -> Behaviour:
    """A plain answer; a value that is no bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/plain; charset=utf-8" if isinstance(body, bytes) else "application/json"
    lines = {"Content-Type": kind, "Content-Length": str(len(raw))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}

    async def behave(asked: Asked, writer: Writer) -> bool:
        writer.write(_head(status, lines) + (b"" if asked.method == "HEAD" else raw))
        await writer.drain()
        return True

    return behave


def packed(body: bytes) -> Behaviour:
    """An answer in gzip."""
    return answer(200, gzip.compress(body), Content_Encoding="gzip")


async def silence(_asked: Asked, _writer: Writer) -> bool:
    """No answer, ever."""
    await asyncio.sleep(3600)
    return False


async def reset(_asked: Asked, writer: Writer) -> bool:
    """The connection is torn down."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


def drip(every_s: float = 0.2) -> Behaviour:
    """Byte by byte, without end."""

    async def behave(_asked: Asked, writer: Writer) -> bool:
        writer.write(_head(200, {"Content-Length": "1000000"}))
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(every_s)

    return behave


async def endless(_asked: Asked, writer: Writer) -> bool:
    """Chunks without end."""
    writer.write(_head(200, {"Transfer-Encoding": "chunked"}))
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


async def many_headers(_asked: Asked, writer: Writer) -> bool:
    """Ten thousand headers."""
    writer.write(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 50) for n in range(10_000)) + b"\r\n")
    await writer.drain()
    return False


async def nonsense(_asked: Asked, writer: Writer) -> bool:
    """What is no HTTP."""
    writer.write(b"\x16\x03\x01 hello?\r\n\r\n")
    await writer.drain()
    return False


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


@dataclass
class HttpRig:
    """One server."""

    host: str = "127.0.0.1"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    _scripts: dict[str, list[Behaviour]] = field(default_factory=dict)
    _turns: Counter[str] = field(default_factory=Counter)
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    def on(self, path: str, script: Behaviour | Sequence[Behaviour]) -> None:
        """What a path answers, time by time."""
        self._turns[path] = 0
        self._scripts[path] = [script] if callable(script) else [*script]

    def url(self, path: str = "/") -> str:
        """Where it is."""
        return f"http://{self.host}:{self.port}{path}"

    def count(self, path: str | None = None) -> int:
        """How often it was asked."""
        return sum(path is None or one.target.partition("?")[0] == path for one in self.asked)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        self.connections += 1
        number, task = self.connections, asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._turn(reader, writer, number):
                    pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _turn(self, reader: asyncio.StreamReader, writer: Writer, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        at = asyncio.get_running_loop().time()
        asked = Asked(method=method, target=target, headers=headers, body=body, at=at, connection=number)
        self.asked.append(asked)
        path = target.partition("?")[0]
        script = self._scripts.get(path, [answer(404, b"nothing here")])
        turn = min(self._turns[path], len(script) - 1)
        self._turns[path] += 1
        return await script[turn](asked, writer)
