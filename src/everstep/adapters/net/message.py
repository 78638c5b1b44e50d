"""Requests and replies, and how much of either there may be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from everstep.adapters.net.guard import Asked
from everstep.domain.record import record

Headers: TypeAlias = tuple[tuple[str, str], ...]
Drain: TypeAlias = Callable[[bytes], None]

CONNECT_S: Final = 5.0
TOTAL_S: Final = 30.0
REDIRECTS_MAX: Final = 5
BODY_BYTES: Final = 10 << 20
PER_HOST: Final = 5
IN_ALL: Final = 64
IDLE_S: Final = 60.0
MOVED: Final = frozenset({301, 302, 303, 307, 308})


@record
class Request:
    """What to send, and how much of an answer is wanted."""

    method: str
    url: str
    asked: Asked
    headers: Headers = ()
    body: bytes = b""
    max_bytes: int = BODY_BYTES
    redirects: int = REDIRECTS_MAX
    connect_s: float = CONNECT_S
    total_s: float = TOTAL_S
    drain: Drain | None = None
    """Takes the body piece by piece; then the reply has none."""


@record
class Reply:
    """What came back."""

    status: int
    url: str
    headers: Headers
    body: bytes = b""
    size_bytes: int = 0
    redirects: tuple[str, ...] = ()
    elapsed_ms: int = 0
    taken: bool = False
    """As of its `Trip`."""

    def header(self, name: str) -> str | None:
        """The first of that name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(slots=True)
class Trip:
    """How far a request has come."""

    sent: bool = False
    """Some of it may have arrived."""
    taken: bool = False
    """It was answered with another place to look at: whatever comes of that, what it asks for may have been done."""
