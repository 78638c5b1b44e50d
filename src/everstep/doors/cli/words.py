"""How things are put into words for a terminal: durations, glimpses of values, safe text. Pure."""

import json
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

ELLIPSIS: Final = "…"
SHORT_ID: Final = 10
_GLANCE: Final = 60


def short(name: str) -> str:
    """`t_7k2m9qx4`: enough of an id to read and to paste."""
    return name[:SHORT_ID]


def seconds(length: float) -> str:
    """`0.4s`, `48.9s`, `1m04s`, `1h02m`."""
    if length < 59.95:
        return f"{length:.1f}s"
    whole = round(length)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def ago(length: float) -> str:
    """`now`, `40 s ago`, `3 min ago`, `2 h ago`, `5 d ago`."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if length >= unit:
            return f"{int(length // unit)} {name} ago"
    return "now"


def size(count: float) -> str:
    """`512 B`, `1.5 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def instant(text: str | None) -> float | None:
    """Seconds since 1970 of an RFC 3339 time."""
    return None if not text else datetime.fromisoformat(text).timestamp()


def clock(text: str | None) -> str:
    """A time of day on this machine's clock."""
    return "" if not text else datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")


def due(text: str) -> str:
    """A time to come on this machine's clock; with its day where that is not today."""
    when = datetime.fromisoformat(text).astimezone()
    today = when.date() == datetime.now(when.tzinfo).date()
    return clock(text) if today else f"{when:%Y-%m-%d} {clock(text)}"


def stamp(text: str | None) -> str:
    """A time for logs: UTC, whole seconds."""
    when = datetime.fromisoformat(text) if text else datetime.now(UTC)
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def about(estimate: dict[str, Any] | None) -> str:
    """`about 2 s (1-4)`: the middle, and between what it lies four times out of five; nothing where nobody looked."""
    if not estimate:
        return ""
    if estimate.get("p50") is None:
        return "no history yet"
    times = [estimate[name] for name in ("p10", "p50", "p90")]
    unit, name = next((one, word) for most, one, word in _UNITS if times[1] < most)
    digits = 0 if times[1] >= unit else 1 if times[1] >= 0.1 * unit else 3
    low, middle, high = (f"{time / unit:.{digits}f}" for time in times)
    between = f" ({low}-{high})" if low != high else ""
    guess = ", a first guess" if estimate.get("basis") == "prior" else ""
    return f"about {middle} {name}{between}{guess}"


_UNITS: Final = ((100, 1, "s"), (6_000, 60, "min"), (float("inf"), 3_600, "h"))
"""Below so many seconds, in this unit."""


def plural(count: int, noun: str) -> str:
    """`1 step`, `3 steps`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(names: list[str], most: int = 6) -> str:
    """`a, b and c`; the rest is counted."""
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def safe(text: str) -> str:
    """Text that cannot steer a terminal: control, escape and bidirectional marks are spelled out."""
    return "".join(char if char.isprintable() or char == " " else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    return {"\n": "⏎", "\t": " "}.get(char, f"\\u{ord(char):04x}")


def safe_lines(text: str) -> list[str]:
    """The lines of a text, each of them safe."""
    return [safe(line) for line in text.replace("\r\n", "\n").split("\n")]


def cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, columns: int) -> str:
    """As much as fits, with an ellipsis if something is missing."""
    if cells(text) <= columns:
        return text
    kept = ""
    for char in text:
        if cells(kept + char) > columns - 1:
            break
        kept += char
    return f"{kept.rstrip()}{ELLIPSIS}" if columns > 0 else ""


def pad(text: str, columns: int) -> str:
    """Cut or filled up to a width."""
    text = cut(text, columns)
    return text + " " * (columns - cells(text))


def output_text(value: object) -> str:
    """A value as `run` prints it: strings as they are, everything else as JSON on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def glance(value: Any) -> str:  # noqa: ANN401 -- any JSON
    """A value in a few words."""
    match value:
        case None:
            return ""
        case bool() | int() | float():
            return json.dumps(value)
        case str():
            return cut(safe(value.strip().partition("\n")[0]), _GLANCE)
        case list():
            return plural(len(value), "item")
        case dict():
            keys = sorted(value, key=lambda key: _TELLING.index(key) if key in _TELLING else len(_TELLING))
            told = [text for key in keys if (text := _field(key, value[key]))][:3]
            return cut(", ".join(told) or plural(len(value), "field"), _GLANCE)
        case _:
            return ""


_TELLING: Final = ("title", "name", "path", "url", "status", "id")
"""Fields that say most stand first."""


def _field(name: str, value: object) -> str:
    """A field in a few words; long texts, flags and nested objects say too little for a line."""
    if isinstance(value, list):
        return f"{len(value)} {safe(name)}"
    brief = isinstance(value, int | float) or (isinstance(value, str) and 0 < len(value) <= 48)
    return f"{safe(name)} {glance(value)}" if brief and not isinstance(value, bool) else ""


def payload_glance(payload: dict[str, Any] | None) -> str:
    """A recorded value in a few words; large ones by their size."""
    if payload is None:
        return ""
    return glance(payload["value"]) if "value" in payload else size(payload.get("bytes") or 0)


_WAITS: Final = {
    "time": "waits",
    "event": "waits for event {detail}{key}",
    "child": "waits for task {detail}",
    "slot": "waits for a slot of {detail}",
    "rate": "waits for its turn at {detail}",
    "breaker": "waits for the breaker of {detail}",
}


def waits_for(waiting: Mapping[str, Any]) -> str:
    """What a step that holds nothing waits for."""
    key = f" with key {waiting['ref']}" if waiting.get("ref") else ""
    words = _WAITS.get(waiting["kind"], "waits for {detail}").format(detail=waiting.get("detail") or "it", key=key)
    until = waiting.get("until")
    return safe(f"{words} until {due(until)}" if until else words)
