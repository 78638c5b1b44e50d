"""Instants as text: RFC 3339, UTC, milliseconds, `Z`. One spelling for the journal and every door.

Both directions sit on the hot path, where many events share a millisecond and more share a second, so both are kept.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from everstep.domain.ids import Instant

_KEPT: Final = 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=_KEPT)
def to_text(at: Instant) -> str:
    """`2026-11-15T18:02:11.899Z`."""
    second, millis = divmod(at, 1000)
    return f"{_second_text(second)}.{millis:03d}Z"


def from_text(text: str) -> Instant:
    """Back to milliseconds; raises ValueError on any other spelling."""
    if len(text) != 24 or text[19] != "." or text[23] != "Z" or not text[20:23].isdecimal():
        raise ValueError(f"not an instant: {text!r}")
    return Instant(_second_of(text[:19]) * 1000 + int(text[20:23]))


def maybe_text(at: Instant | None) -> str | None:
    """As `to_text`; nothing stays nothing."""
    return None if at is None else to_text(at)


def maybe_instant(text: str | None) -> Instant | None:
    """As `from_text`; nothing stays nothing."""
    return None if text is None else from_text(text)


@lru_cache(maxsize=_KEPT)
def _second_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S").zfill(19)


@lru_cache(maxsize=_KEPT)
def _second_of(text: str) -> int:
    seconds = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC) - _EPOCH
    return seconds.days * 86_400 + seconds.seconds
