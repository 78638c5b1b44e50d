"""The one HTTP client of all tools: every hop is checked, then made to the address that was checked.

Names are looked up here and nowhere else; redirects are followed by hand; bodies are counted after unpacking. Hosts
that a plan wrote out and hosts from data never share a connection: what one of them may reach, the other may not.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from everstep.adapters.net.guard import Asked, Guard
from everstep.adapters.net.message import MOVED, PER_HOST, Reply, Request, Trip
from everstep.adapters.net.url import Address, Url, parse_url
from everstep.domain.failure import EffectState
from everstep.ports.tool import Denied, Misconfigured, ToolError, Transient, Uncertain

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_KEEPS_METHOD: Final = frozenset({307, 308})
_TO_ONE_HOST: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


async def look_up(host: str, port: int) -> Sequence[str]:
    """All addresses of a name, by the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [*dict.fromkeys(str(one[4][0]) for one in found)]


@dataclass(kw_only=True)
class Client:
    """Connections are kept and used again, five to a host."""

    guard: Guard
    resolve: Resolve = look_up
    trust: Any = None
    """An SSLContext: whose certificates are believed; None: those the system's store names."""
    _pools: dict[bool, Any] = field(default_factory=dict)
    _hosts: WeakValueDictionary[str, asyncio.Semaphore] = field(default_factory=WeakValueDictionary)
    """Of hosts that are being asked just now."""

    async def send(self, request: Request) -> Reply:
        """Send it, follow redirects; raises ToolErrors and nothing else."""
        began = time.monotonic()
        seen: list[str] = []
        trip = Trip()
        try:
            async with asyncio.timeout(request.total_s):
                reply = await self._follow(request, seen, trip)
        except TimeoutError:
            raise _silent(request, sent=trip.sent) from None
        except ToolError as error:
            if trip.taken and error.effect_state is EffectState.NONE:
                error.effect_state = EffectState.UNKNOWN
            raise
        elapsed_ms = round((time.monotonic() - began) * 1000)
        return replace(reply, redirects=tuple(seen), elapsed_ms=elapsed_ms, taken=trip.taken)

    async def reachable(self, url: Url, asked: Asked) -> Sequence[Address]:
        """The addresses of a host, all of which may be reached; raises ToolErrors."""
        return self.guard.check(url, await self._addresses(url), asked)

    async def close(self) -> None:
        """Let all connections go."""
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()

    async def _follow(self, request: Request, seen: list[str], trip: Trip) -> Reply:
        while True:
            url = parse_url(request.url)
            reply = await self._hop(request, url, trip)
            place = reply.header("location")
            if reply.status not in MOVED or place is None:
                return reply
            trip.taken = trip.taken or not _is_sent_on(request, reply.status)
            if len(seen) >= request.redirects:
                raise Misconfigured(f"{url} leads on, after {len(seen)} redirects already", code="http_redirects")
            request = _redirected(request, url, parse_url(_joined(url, place)), reply.status)
            seen.append(request.url)

    async def _hop(self, request: Request, url: Url, trip: Trip) -> Reply:
        from everstep.adapters.net.exchange import exchange

        addresses = tuple(str(address) for address in await self.reachable(url, request.asked))
        turn = asyncio.Semaphore(PER_HOST)
        async with self._hosts.setdefault(url.place, turn):
            return await exchange(self._pool(literal=request.asked.literal), request, url, addresses, trip=trip)

    def _pool(self, *, literal: bool) -> Any:
        from everstep.adapters.net.exchange import new_pool

        if literal not in self._pools:
            self._pools[literal] = new_pool(self.trust)
        return self._pools[literal]

    async def _addresses(self, url: Url) -> Sequence[Address]:
        if url.address is not None:
            return (url.address,)
        try:
            found = await self.resolve(url.host, url.port)
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                raise Transient(f"'{url.host}' could not be looked up just now", code="net_dns") from error
            raise Misconfigured(f"there is no host '{url.host}'", code="net_host") from error
        except UnicodeError as error:
            raise Misconfigured(f"there is no host '{url.host}'", code="net_host") from error
        if not found:
            raise Misconfigured(f"there is no host '{url.host}'", code="net_host")
        return [ip_address(one.partition("%")[0]) for one in found]


def _joined(url: Url, place: str) -> str:
    """A redirect's target against the URL it came from."""
    if place.startswith("//"):
        return f"{url.scheme}:{place}"
    if "://" in place.partition("?")[0]:
        return place
    if place.startswith("/"):
        return f"{url.scheme}://{url.authority}{place}"
    folder = url.target.partition("?")[0].rpartition("/")[0]
    return f"{url.scheme}://{url.authority}{folder}/{place}"


def _is_sent_on(request: Request, status: int) -> bool:
    """Whether it goes to the next place as it is, rather than that its outcome is looked at there."""
    return status in _KEEPS_METHOD or request.method in {"GET", "HEAD"}


def _redirected(request: Request, old: Url, new: Url, status: int) -> Request:
    """The next hop: another host is data, gets no credentials, and nothing goes from https to http."""
    if old.scheme == "https" and new.scheme == "http":
        raise Denied(f"{old} leads to {new}, which is not encrypted", code="policy_denied")
    same = (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port)
    keeps = _is_sent_on(request, status)
    headers = request.headers if same else tuple(one for one in request.headers if one[0].lower() not in _TO_ONE_HOST)
    if not keeps:
        headers = tuple(one for one in headers if one[0].lower() != "content-type")
    asked = request.asked
    if not same:
        asked = replace(asked, literal=False, configured=False, came_from=f"a redirect of {old}")
    return replace(
        request,
        url=str(new),
        asked=asked,
        headers=headers,
        method=request.method if keeps else "GET",
        body=request.body if keeps else b"",
    )


def _silent(request: Request, *, sent: bool) -> ToolError:
    what = f"no complete answer of {request.url} came within {request.total_s:g} s"
    return Uncertain(what, code="net_read") if sent else Transient(what, code="net_connect")
