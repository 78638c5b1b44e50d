"""What a setting may be: kinds of values, how they are read and how they are written. The table of keys uses them."""

import re
from collections.abc import Callable
from math import isfinite
from typing import Final, TypeAlias, cast

from everstep.domain.ids import Millis
from everstep.domain.permissions import KNOWN, unknown
from everstep.domain.quantities import format_duration, format_size, parse_duration, parse_size
from everstep.domain.rate import parse_rate
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.settings.shown import shown

Value: TypeAlias = str | int | float | tuple[str, ...] | None
"""As it is kept: durations in milliseconds, sizes in bytes. None: not set, and there is no fixed default."""

SHOWN_CHARS_MAX: Final = 80


@record
class Kind:
    """What a value must be, and how it is written."""

    noun: str
    read: Callable[[JsonValue], Value]
    """The value as it is kept; None if it is not of this kind."""
    schema: JsonObject
    """The same for editors, which may allow more, never less; bounds are the key's."""
    from_text: Callable[[str], JsonValue] = str
    """What the text of a variable means."""
    show: Callable[[int], JsonValue] = int
    """A number as it would be written."""


@record
class Key:
    """One setting."""

    name: str
    kind: Kind
    default: JsonValue
    meaning: str
    least: int = 0
    most: int = 0

    @property
    def usual(self) -> Value:
        """The default as it is kept."""
        return None if self.default is None else self.kind.read(self.default)

    def written(self, value: Value) -> JsonValue:
        """A kept value as it would be written."""
        if isinstance(value, tuple):
            return list(value)
        return self.kind.show(value) if isinstance(value, int) else value

    def seen(self, value: Value) -> JsonValue:
        """The same as anybody may see it."""
        return shown(self.name, self.written(value))


# --- kinds ---


def _text(value: JsonValue) -> Value:
    return value if isinstance(value, str) and "\0" not in value else None


def _some_text(value: JsonValue) -> Value:
    return _text(value) or None


_OWNER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


def _owner(value: JsonValue) -> Value:
    return value if isinstance(value, str) and _OWNER.fullmatch(value) else None


def _count(value: JsonValue) -> Value:
    return value if type(value) is int else None


def _count_in(text: str) -> JsonValue:
    return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else text


def _amount(value: JsonValue) -> Value:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else None


def _amount_in(text: str) -> JsonValue:
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text) else text


def _words(value: JsonValue) -> Value:
    if not isinstance(value, list | tuple):
        return None
    words = tuple(word for word in value if isinstance(word, str) and word and "\0" not in word)
    return words if len(words) == len(value) else None


_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def _digests(value: JsonValue) -> Value:
    words = _words(value)
    return words if isinstance(words, tuple) and all(_DIGEST.fullmatch(str(word)) for word in words) else None


def _words_in(text: str) -> JsonValue:
    return [word.strip() for word in text.split(",") if word.strip()]


def _flag(value: JsonValue) -> Value:
    return int(value) if isinstance(value, bool) else None


def _flag_in(text: str) -> JsonValue:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)


def _duration(value: JsonValue) -> Value:
    return parse_duration(value) if isinstance(value, str) else None


def _size(value: JsonValue) -> Value:
    return parse_size(value) if isinstance(value, str) else None


def one_of(*words: str) -> Kind:
    return Kind(
        noun=f"one of {', '.join(words)}",
        read=lambda value: value if isinstance(value, str) and value in words else None,
        schema={"enum": [*words]},
    )


def _share(value: JsonValue) -> Value:
    return round(value * 1_000) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share_in(text: str) -> JsonValue:
    return float(text) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text) else text


_STRING: Final[JsonObject] = {"type": "string"}
_STRINGS: Final[JsonObject] = {"type": "array", "items": {"type": "string", "minLength": 1}}


def _spelled(pattern: str) -> JsonObject:
    return {"type": "string", "pattern": f"^{pattern}$"}


TEXT: Final = Kind(noun="text", read=_text, schema=_STRING)
SOME_TEXT: Final = Kind(noun="text that is not empty", read=_some_text, schema={**_STRING, "minLength": 1})
OWNER: Final = Kind(noun="1 to 128 letters, digits, '.', '_', '@', '-'", read=_owner, schema=_spelled(_OWNER.pattern))
EMPTY: Final = Kind(noun="a table", read=lambda value: () if value == {} else None, schema={"type": "object"})
"""A table that says nothing but its name."""
FLAG: Final = Kind(noun="true or false", read=_flag, from_text=_flag_in, show=bool, schema={"type": "boolean"})
WORDS: Final = Kind(noun="a list of texts", read=_words, from_text=_words_in, schema=_STRINGS)
DIGESTS: Final = Kind(
    noun="a list of digests, each sha256: and 64 hex digits",
    read=_digests,
    from_text=_words_in,
    schema={"type": "array", "items": _spelled(_DIGEST.pattern)},
)
PERMISSIONS: Final = Kind(
    noun=f"a list of permissions: {', '.join(sorted(KNOWN))}",
    read=lambda value: None if (said := _words(value)) is None or unknown(cast("tuple[str, ...]", said)) else said,
    from_text=_words_in,
    schema={"type": "array", "items": _spelled(f"({'|'.join(re.escape(one) for one in sorted(KNOWN))})(:.*)?")},
)
COUNT: Final = Kind(noun="a whole number", read=_count, from_text=_count_in, schema={"type": "integer"})
AMOUNT: Final = Kind(
    noun="a number that is not negative", read=_amount, from_text=_amount_in, schema={"type": "number"}
)
DURATION: Final = Kind(
    noun="a duration such as 500ms, 30s, 1h30m",
    read=_duration,
    show=lambda length: format_duration(Millis(length)),
    schema=_spelled("([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?"),
)
SHARE: Final = Kind(
    noun="a share such as 0.5",
    read=_share,
    from_text=_share_in,
    show=lambda thousandths: thousandths / 1_000,
    schema={"type": "number"},
)
"""Kept in thousandths."""
RATE: Final = Kind(
    noun="a rate such as 10/1s",
    read=lambda value: value if isinstance(value, str) and parse_rate(value) is not None else None,
    schema=_spelled("[0-9]+/[^:]+(:[0-9]+)?"),
)
SCOPE: Final = one_of("worker", "fleet")
SIZE: Final = Kind(
    noun="a size such as 32KiB, 16MB", read=_size, show=format_size, schema=_spelled("[0-9]+([KMG]i?)?B")
)

SECOND: Final = 1_000
HOUR: Final = 3_600 * SECOND
DAY: Final = 24 * HOUR
KIB: Final = 1_024


# --- keys ---


def key_of(name: str, kind: Kind, default: JsonValue, meaning: str, *, within: tuple[int, int] = (0, 0)) -> Key:
    return Key(name=name, kind=kind, default=default, meaning=meaning, least=within[0], most=within[1])


def some_of(*words: str) -> Kind:
    """A list of some of these."""

    def read(value: JsonValue) -> Value:
        said = _words(value)
        return said if isinstance(said, tuple) and all(word in words for word in said) else None

    return Kind(
        noun=f"a list of some of {', '.join(words)}",
        read=read,
        from_text=_words_in,
        schema={"type": "array", "items": {"enum": [*words]}},
    )


def flag_key(name: str, meaning: str, *, default: bool) -> Key:
    return Key(name=name, kind=FLAG, default=default, meaning=meaning, most=1)
