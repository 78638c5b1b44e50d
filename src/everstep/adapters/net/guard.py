"""What may be reached, and by whose word (security, section 8). Pure: it judges names and addresses it is given.

A host that somebody wrote out in a trusted plan, or in the configuration, may be on this machine or in this network. A
host that came from data may not, unless the operator lists its network. Every address of a name must pass.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Final, Literal, TypeAlias

from everstep.adapters.net.url import Address, Url
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.ports.tool import Denied

Use: TypeAlias = Literal["read", "write"]
Reach: TypeAlias = Literal["public", "near", "closed"]
"""`near`: this machine and private networks; `closed`: what nobody reaches by a name."""

_NEAR: Final = tuple(
    map(ip_network, ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)
_CLOSED: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",
            "169.254.0.0/16",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "::/128",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
            "2001:db8::/32",
        ),
    )
)
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")


def unwrapped(address: Address) -> tuple[Address, ...]:
    """The addresses that an address stands for: itself, or those it carries."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _TRANSLATED:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address((int(address) >> 80) & 0xFFFFFFFF),)
    if address.teredo is not None:
        return address.teredo
    if int(address) >> 32 == 0 and int(address) > 1:  # ::a.b.c.d, long out of use
        return (IPv4Address(int(address)),)
    return (address,)


def reach_of(address: Address) -> Reach:
    """How near an address is; the strictest of all it stands for."""
    reaches = [_reach(one) for one in unwrapped(address)]
    if "closed" in reaches:
        return "closed"
    return "near" if "near" in reaches else "public"


def _reach(address: Address) -> Reach:
    if any(address.version == net.version and address in net for net in _NEAR):
        return "near"
    if any(address.version == net.version and address in net for net in _CLOSED) or not address.is_global:
        return "closed"
    return "public"


@record
class Network:
    """`10.0.0.0/8:443`: a network, and the port that may be reached in it; no port: all."""

    cidr: str
    port: int | None = None

    def holds(self, address: Address, port: int) -> bool:
        """Whether this is in it."""
        net = ip_network(self.cidr, strict=False)
        return self.port in {None, port} and net.version == address.version and address in net


def parse_network(text: str) -> Network:
    """A line of `policy.networks`; raises ValueError."""
    cidr, port = text, None
    if "]" in text or text.count(":") == 1:
        cidr, _, said = text.rpartition(":")
        port = int(said)
    cidr = cidr.replace("[", "").replace("]", "")
    ip_network(cidr, strict=False)
    return Network(cidr=cidr, port=port)


@record
class Asked:
    """Who wants to reach something, and where its host was written."""

    use: Use = "read"
    literal: bool = False
    """Scheme, host and port stand in a trusted plan, or in the operator's configuration."""
    configured: bool = False
    """In the configuration: then the host is also one that may be written to."""
    came_from: str = "data"
    """In words, for a refusal."""


@record
class Guard:
    """The operator's rules."""

    hosts: tuple[str, ...] = ()
    """`api.example.com`, `*.example.com`, `host:8080`: may be written to, and read where reading is by list."""
    networks: tuple[Network, ...] = ()
    public_reads: bool = True
    own_port: int | None = None
    """Where our own door listens: never reached from inside."""

    def check(self, url: Url, addresses: Iterable[Address], asked: Asked) -> Sequence[Address]:
        """The addresses, all of which may be reached; raises Denied."""
        found = tuple(addresses)
        for address in found:
            self._check_near(url, address, asked)
        if not (asked.configured or self._listed(url)) and (asked.use == "write" or not self.public_reads):
            what = "write to" if asked.use == "write" else "read from"
            fix = f'hosts = ["{url.place}"]'
            raise denied(f"nothing may {what} {url.place}, which came from {asked.came_from}", fix)
        return found

    def _check_near(self, url: Url, address: Address, asked: Asked) -> None:
        reach = reach_of(address)
        shown = url.place if url.address else f"{url.place} is {address}, and"
        if self.own_port == url.port and reach != "public":
            raise Denied(f"{shown} is everstep's own door, which no tool may use", code="policy_denied")
        inner = (address, *unwrapped(address))
        if reach == "public" or (reach == "near" and asked.literal):
            return
        if any(net.holds(one, url.port) for net in self.networks for one in inner):
            return
        size = 32 if isinstance(inner[-1], IPv4Address) else 128
        at = f"[{inner[-1]}/{size}]" if isinstance(inner[-1], IPv6Address) else f"{inner[-1]}/{size}"
        raise denied(f"{shown} came from {asked.came_from}", f'networks = ["{at}:{url.port}"]')

    def _listed(self, url: Url) -> bool:
        return any(_matches(pattern.lower(), url) for pattern in self.hosts)


def _matches(pattern: str, url: Url) -> bool:
    name, colon, port = pattern.rpartition(":")
    if colon and port.isdecimal():
        if int(port) != url.port:
            return False
        pattern = name
    pattern = pattern.strip("[]")
    if pattern.startswith("*."):
        return url.host.endswith(pattern[1:]) and len(url.host) > len(pattern) - 1
    return url.host == pattern


def denied(what: str, fix: str) -> Denied:
    """A refusal with the line that would allow it."""
    details: JsonObject = {"fix": {"file": "everstep.toml", "line": f"[policy] {fix}"}}
    return Denied(
        f"{what}; allow it in everstep.toml: [policy] {fix}",
        code="policy_denied",
        what_to_do=f"if it is right, add to everstep.toml: [policy] {fix}",
        details=details,
    )
