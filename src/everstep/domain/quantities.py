"""Lengths of time and sizes as people write them: `1h30m`, `512MB`. One canonical spelling each."""

import re
from typing import Final

from everstep.domain.ids import Millis
from everstep.domain.values import INTEGER_MAX

DURATION_MS_MAX: Final = Millis(365 * 86_400_000)

_TIMES: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
"""Falling, as they must stand."""
_DURATION: Final = re.compile("".join(rf"(?:([0-9]{{1,15}}){unit}(?![a-z]))?" for unit in _TIMES))

_SIZES: Final = {
    "GiB": 1024**3, "GB": 1000**3, "MiB": 1024**2, "MB": 1000**2, "KiB": 1024, "KB": 1000, "B": 1,
}  # fmt: skip
_SIZE: Final = re.compile(rf"([0-9]{{1,16}})({'|'.join(_SIZES)})")


def parse_duration(text: str) -> Millis | None:
    """`500ms`, `30s`, `1h30m`, `2d`: units falling, each once, 1 ms to 365 days."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    total = sum(int(count or 0) * unit for count, unit in zip(match.groups(), _TIMES.values(), strict=True))
    return Millis(total) if 1 <= total <= DURATION_MS_MAX else None


def format_duration(length: Millis) -> str:
    """The canonical spelling: `90s` is `1m30s`."""
    text = ""
    rest: int = length
    for name, unit in _TIMES.items():
        count, rest = divmod(rest, unit)
        text += f"{count}{name}" if count else ""
    return text or "0ms"


def parse_size(text: str) -> int | None:
    """`100B`, `64KB` (1000), `512MiB` (1024), in bytes; at least one."""
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _SIZES[match[2]] if match else 0
    return size if 1 <= size <= INTEGER_MAX else None


def format_size(size: int) -> str:
    """The canonical spelling: the unit that leaves the smallest whole number."""
    return next(f"{size // unit}{name}" for name, unit in _SIZES.items() if size % unit == 0)
