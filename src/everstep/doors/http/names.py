"""Which names are ours. A browser can be made to ask anything of anybody, but not to lie in these two headers.

Parsed whole, never by prefix or suffix: `localhost.evil.test` is not `localhost`.
"""

import re
from collections.abc import Iterable
from typing import Final

from everstep.domain.record import record

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::([0-9]{1,5}))?")
_SECURE: Final = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


@record
class Names:
    """Hosts under which we may be asked (a name for any port, or `name:port`), and origins that may ask."""

    hosts: frozenset[str]
    origins: frozenset[str]
    secure: bool = False
    """Whoever asks speaks TLS, to us or to the proxy in front of us."""

    def is_host(self, host: str) -> bool:
        """Whether this is a name of ours; loopback names with any port, since ports are forwarded."""
        found = _HOST.fullmatch(host.lower())
        return found is not None and (found[1] in LOOPBACK or not self.hosts.isdisjoint({found[1], found[0]}))

    def is_origin(self, origin: str, host: str, scheme: str) -> bool:
        """Whether a page of this origin may ask: our own, as it was asked for, or one that is configured."""
        said = origin.lower()
        own = f"{'https' if self.secure else _SECURE.get(scheme, '')}://{host.lower()}"
        return said != "null" and (said == own or said in self.origins)


def names_of(hosts: Iterable[str], origins: Iterable[str], *, secure: bool) -> Names:
    """As they are configured."""
    return Names(
        hosts=frozenset(host.lower() for host in hosts),
        origins=frozenset(origin.lower().rstrip("/") for origin in origins),
        secure=secure,
    )
