"""One strict reader of URLs. What two programs could read in two ways is refused, not repaired."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from everstep.domain.record import record
from everstep.ports.tool import Misconfigured

URL_CHARS_MAX: Final = 8_192
_PORTS: Final = {"http": 80, "https": 443}
_WHOLE: Final = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ESCAPES: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

Address = IPv4Address | IPv6Address


@record
class Url:
    """An address that can only be read in one way."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as they are sent."""
    address: Address | None = None
    """If the host is one."""

    @property
    def authority(self) -> str:
        """As it stands in a URL and in `Host`: the port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """Host and port, always both."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> Url:
    """The parts; raises Misconfigured `net_url`."""
    if len(text) > URL_CHARS_MAX:
        raise _bad(text, f"has more than {URL_CHARS_MAX} characters")
    if any(ord(character) <= 0x20 or ord(character) == 0x7F for character in text):
        raise _bad(text, "holds a space or a control character")
    if "\\" in text:
        raise _bad(text, "holds a backslash")
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise _bad(text, "is not http://… or https://…")
    scheme, authority, target = whole[1].lower(), whole[2], whole[3]
    if "@" in authority:
        raise _bad(text, "holds a user name; credentials go into 'auth'")
    if not target.isascii() or _ESCAPES.search(target):
        raise _bad(text, "holds a character that must be written as %XX")
    host, port = _split(text, authority)
    name, address = _host(text, host)
    path = target if target.startswith("/") else f"/{target}"
    return Url(scheme=scheme, host=name, port=port or _PORTS[scheme], target=path, address=address)


def _split(text: str, authority: str) -> tuple[str, int | None]:
    host, colon, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
    if not colon:
        return authority, None
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > 65_535:
        raise _bad(text, "has no proper port")
    return host, int(port)


def _host(text: str, host: str) -> tuple[str, Address | None]:
    if host.startswith("[") and host.endswith("]"):
        try:
            six = IPv6Address(host[1:-1] if "%" not in host else "")
        except ValueError:
            raise _bad(text, "has no proper IPv6 address") from None
        return str(six), six
    name = host.lower() if host.isascii() else _idna(text, host)
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise _bad(text, "has no proper host name")
    if not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return name, None
    try:
        address = ip_address(name)
    except ValueError:
        raise _bad(text, "has a number as its host that is no plain address such as 192.0.2.1") from None
    return name, address


def _idna(text: str, host: str) -> str:
    import idna

    try:
        return idna.encode(host, uts46=False).decode()
    except (idna.IDNAError, UnicodeError):
        raise _bad(text, "has no proper host name") from None


def _bad(text: str, why: str) -> Misconfigured:
    shown = text if len(text) <= 100 else f"{text[:99]}…"
    return Misconfigured(f"{shown!r} {why}", code="net_url")
