"""One exchange: a request to an address that was checked, and its answer within bounds. The only user of the library.

Loaded with the first request, so that whoever needs no network does not pay for it.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final

import httpcore2 as core

from everstep.adapters.net.message import IDLE_S, IN_ALL, MOVED, Reply, Request, Trip
from everstep.adapters.net.url import Url
from everstep.domain.raised import text_of
from everstep.domain.values import JsonObject
from everstep.ports.tool import Misconfigured, ToolError, Transient, Uncertain

RATIO_MAX: Final = 100
RATIO_FROM_BYTES: Final = 1 << 16

_pinned: ContextVar[tuple[str, ...]] = ContextVar("everstep_pinned", default=())


def new_pool(trust: ssl.SSLContext | None) -> core.AsyncConnectionPool:
    """Connections to checked addresses."""
    return core.AsyncConnectionPool(
        ssl_context=trust or ssl.create_default_context(),
        max_connections=IN_ALL,
        keepalive_expiry=IDLE_S,
        network_backend=PinnedNetwork(),
    )


async def exchange(
    pool: core.AsyncConnectionPool, request: Request, url: Url, addresses: tuple[str, ...], *, trip: Trip
) -> Reply:
    """Send it to one of these addresses; raises ToolErrors."""
    token = _pinned.set(addresses)
    try:
        return await _exchange(pool, request, url, trip)
    except (core.NetworkError, core.TimeoutException, core.ProtocolError, OSError) as error:
        raise _failure(url, error) from error
    finally:
        _pinned.reset(token)


async def _exchange(pool: core.AsyncConnectionPool, request: Request, url: Url, trip: Trip) -> Reply:
    headers = [("Host", url.authority), *request.headers]
    if request.body or request.method in {"POST", "PUT", "PATCH"}:
        headers.append(("Content-Length", str(len(request.body))))
    asked = core.Request(
        request.method,
        core.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
        headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers],
        content=request.body or None,
        extensions={
            "timeout": {"connect": request.connect_s, "pool": request.total_s},
            "trace": _tell(trip),
            "sni_hostname": url.host,
        },
    )
    response = await pool.handle_async_request(asked)
    try:
        kept = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        reply = Reply(status=response.status, url=str(url), headers=kept)
        if response.status in MOVED and reply.header("location"):
            return reply
        body, size = await _body(response.aiter_stream(), reply, request)
        return replace(reply, body=body, size_bytes=size)
    finally:
        await response.aclose()


class PinnedNetwork(core.AsyncNetworkBackend):
    """Connects to the addresses that were checked, whatever the name means by now."""

    def __init__(self) -> None:
        self._real = core.AnyIOBackend()

    async def connect_tcp(self, *_args: Any, **said: Any) -> core.AsyncNetworkStream:
        addresses = _pinned.get()
        assert addresses, f"nobody checked {said['host']}"
        error: Exception | None = None
        for address in addresses:
            try:
                stream = await self._real.connect_tcp(**{**said, "host": address})
            except (core.ConnectError, core.ConnectTimeout) as failed:
                error = failed
                continue
            peer = stream.get_extra_info("server_addr")
            assert peer is None or ip_address(str(peer[0]).partition("%")[0]) == ip_address(address)
            return stream
        assert error is not None
        raise error

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def _body(chunks: AsyncIterator[bytes], reply: Reply, request: Request) -> tuple[bytes, int]:
    """The body, unpacked and within bounds."""
    kept, size, raw = bytearray(), 0, 0
    unpack = _unpacker(reply.header("content-encoding"))
    async for chunk in chunks:
        raw += len(chunk)
        for piece in unpack(chunk):
            size += len(piece)
            if size > request.max_bytes:
                raise _too_large(f"the answer of {reply.url} has more than {request.max_bytes} bytes", request, size)
            if size > RATIO_FROM_BYTES and size > raw * RATIO_MAX:
                raise _too_large(f"the answer of {reply.url} unpacks to over {RATIO_MAX} times its size", request, size)
            if request.drain is None:
                kept += piece
            else:
                request.drain(piece)
    return bytes(kept), size


def _unpacker(encoding: str | None) -> Callable[[bytes], Iterable[bytes]]:
    match (encoding or "identity").strip().lower():
        case "identity" | "":
            return lambda chunk: (chunk,)
        case "gzip" | "x-gzip":
            return _inflate(zlib.decompressobj(31))
        case "deflate":
            return _inflate(zlib.decompressobj())
        case other:
            what = f"the answer is packed as '{other}', which nobody asked for"
            raise Misconfigured(what, code="http_encoding", effect_state="made")


def _inflate(packed: Any) -> Callable[[bytes], Iterable[bytes]]:
    def pieces(chunk: bytes) -> Iterable[bytes]:
        while chunk:
            try:
                yield packed.decompress(chunk, 1 << 16)
            except zlib.error as error:
                raise Uncertain(f"the answer is not what its encoding says: {error}", code="net_read") from error
            chunk = packed.unconsumed_tail

    return pieces


def _tell(trip: Trip) -> Callable[[str, Any], Awaitable[None]]:
    async def trace(event: str, _info: Any) -> None:
        if event.endswith("send_request_headers.started"):
            trip.sent = True

    return trace


def _failure(url: Url, error: Exception) -> ToolError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Misconfigured(f"the certificate of {url.place}: {cause.verify_message}", code="net_tls")
        if isinstance(cause, ConnectionRefusedError):
            return Transient(f"{url.place} refuses connections", code="net_refused")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, core.ConnectError | core.ConnectTimeout | core.PoolTimeout):
        return Transient(f"no connection to {url.place}: {text_of(error)}", code="net_connect")
    code = "net_read" if isinstance(error, core.TimeoutException) else "net_reset"
    return Uncertain(f"the connection to {url.place} broke: {text_of(error)}", code=code)


class ReplyTooLarge(ToolError):
    """More than was asked for; the request was made all the same."""

    category = "resource"


def _too_large(what: str, request: Request, size: int) -> ReplyTooLarge:
    details: JsonObject = {"limit": "bytes", "used": size, "max": request.max_bytes, "remote": True}
    return ReplyTooLarge(what, code="reply_too_large", details=details, effect_state="unknown")
