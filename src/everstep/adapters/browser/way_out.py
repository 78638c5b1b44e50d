"""The one way out of the browser: a proxy that checks every connection as the HTTP tools do.

What a page loads, and where it leads, is data: it reaches public addresses, unless the plan wrote the host out itself.
"""

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field
from typing import Final

from everstep.adapters.net import Asked, Client, parse_url
from everstep.adapters.net.url import Url
from everstep.ports.tool import ToolError, Transient

HEAD_BYTES: Final = 64 << 10
CONNECT_S: Final = 5.0
CLOSE_S: Final = 2.0
_HOP: Final = (b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive")


@dataclass(eq=False)
class WayOut:
    """The proxy of one attempt."""

    client: Client
    asked: Asked
    """Who wrote the address of the call."""
    place: str
    """Host and port that were asked for; every other one is data."""
    trouble: dict[str, ToolError] = field(default_factory=dict)
    """Why a place could not be reached."""
    bytes_in: int = 0
    bytes_out: int = 0
    _server: asyncio.Server | None = None
    _talks: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def open(self, way: socket.socket | None) -> str:
        """Where it listens: on a socket of the browser's own network, if it has one."""
        if self._server is not None:
            self._server.close()
        own = {"host": "127.0.0.1", "port": 0} if way is None else {"sock": way}
        self._server = await asyncio.start_server(self._serve, limit=HEAD_BYTES, **own)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def close(self) -> None:
        """Nothing goes out any more."""
        if self._server is not None:
            self._server.close()
        for talk in [*self._talks]:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the browser sees a connection that broke
        except asyncio.CancelledError:
            pass  # by `close`: nobody waits for this talk, and asyncio would call its end an error
        finally:
            self._talks.discard(talk)
            await closed(writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head[:-4].split(b"\r\n")
        method, target, version = line.split(b" ")
        tunnel = method == b"CONNECT"
        try:
            url = parse_url(f"https://{target.decode()}/" if tunnel else target.decode())
            there = await self._connected(url)
        except ToolError as error:
            with contextlib.suppress(ToolError, UnicodeDecodeError):
                self.trouble[parse_url(f"http://{target.decode()}/" if tunnel else target.decode()).place] = error
            writer.write(b"HTTP/1.1 502 Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            return
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            kept = [one for one in headers if one.partition(b":")[0].strip().lower() not in _HOP]
            asked = b" ".join((method, url.target.encode() or b"/", version))
            there[1].write(b"\r\n".join((asked, *kept, b"connection: close", b"", b"")))
        await self._both_ways((reader, writer), there)

    async def _connected(self, url: Url) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        literal = self.asked.literal and url.place == self.place
        asked = self.asked if literal else Asked(use="read", came_from=f"a page that {self.place} led to")
        error: OSError | None = None
        for address in await self.client.reachable(url, asked):
            try:
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(str(address), url.port)
            except OSError as failed:
                error = failed
        if isinstance(error, ConnectionRefusedError):
            raise Transient(f"{url.place} refuses connections", code="net_refused") from error
        raise Transient(f"no connection to {url.place}", code="net_connect") from error

    async def _both_ways(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        out = asyncio.ensure_future(self._pump(here[0], there[1], inward=False))
        back = asyncio.ensure_future(self._pump(there[0], here[1], inward=True))
        try:
            await back
        finally:
            for one in (out, back):
                one.cancel()
            await asyncio.gather(out, back, return_exceptions=True)
            await closed(there[1])

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, inward: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(1 << 16):
                sink.write(piece)
                await sink.drain()
                self.bytes_in += len(piece) * inward
                self.bytes_out += len(piece) * (not inward)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Let go of it when it has said all it had to say, but do not wait for long."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_S):
            await writer.wait_closed()
    except OSError:  # a timeout is one too
        writer.transport.abort()
