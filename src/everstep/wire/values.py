"""Strict JSON, canonical bytes, digests: the Codec.

Writing: `msgspec` is fast but writes NaN as `null`, numbers as keys and integers of any size, so a strict walk comes
first; it also tells whether msgspec's spelling is the canonical one (RFC 8785) or the exact writer is needed.
Reading: what comes from outside is measured before it is parsed, so that no depth, size or repeated key gets in.
The quick walk only says yes or no; the slow one, taken after a no, says where and why.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from math import isfinite
from typing import Final

import msgspec

from everstep.domain.canonical import canonical_text
from everstep.domain.ids import Digest
from everstep.domain.pointer import child
from everstep.domain.values import (
    ARTIFACT_BYTES_MAX,
    DEPTH_MAX,
    INLINE_BYTES_MAX,
    INTEGER_MAX,
    JsonObject,
    JsonValue,
    NotJson,
    Sealed,
)
from everstep.wire.schema import Violation, compile_schema

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final[Callable[[str | bytes], JsonValue]] = msgspec.json.Decoder().decode


class Codec:
    """Seals values and compiles schemas. Made once; keeps nothing but its limits."""

    def __init__(self, *, inline_bytes_max: int = INLINE_BYTES_MAX, bytes_max: int = ARTIFACT_BYTES_MAX) -> None:
        self._inline_bytes_max = inline_bytes_max
        self._bytes_max = bytes_max

    def seal(self, value: JsonValue, *, untrusted: bool = False) -> Sealed:
        """Check, measure and name a value; raises NotJson."""
        raw = canonical(value, bytes_max=self._bytes_max)
        size = len(raw)
        return Sealed(
            value, digest_of(raw), size, raw=raw, untrusted=untrusted, by_reference=size > self._inline_bytes_max
        )

    def seal_copy(self, value: JsonValue, *, untrusted: bool = False) -> Sealed:
        """The same, apart from `value`: whoever holds on to that changes nothing here."""
        raw = canonical(value, bytes_max=self._bytes_max)
        size = len(raw)
        far = size > self._inline_bytes_max
        return Sealed(None, digest_of(raw), size, raw=raw, untrusted=untrusted, by_reference=far, thaw=_decode)

    def fresh(self, sealed: Sealed) -> JsonValue:
        """A copy of the recorded value, so that nobody can change what was sealed."""
        return _decode(sealed.raw if sealed.raw is not None else self.payload(sealed.value))

    def keep(self, raw: bytes) -> Sealed:
        """Bytes of any kind by their digest; raises NotJson if they are too many."""
        if len(raw) > self._bytes_max:
            raise NotJson("", f"{len(raw)} bytes, {self._bytes_max} are allowed")
        return Sealed(None, digest_of(raw), len(raw), raw=raw, untrusted=True, by_reference=True, present=False)

    def payload(self, value: JsonValue) -> bytes:
        """Canonical bytes; raises NotJson."""
        return canonical(value, bytes_max=self._bytes_max)

    def validator(self, schema: JsonObject) -> Callable[[JsonValue], list[Violation]]:
        """A check compiled once; never fetches a remote reference."""
        return compile_schema(schema)


def canonical(value: JsonValue, *, bytes_max: int = ARTIFACT_BYTES_MAX) -> bytes:
    """The RFC 8785 bytes of a strict JSON value; raises NotJson."""
    kind = type(value)
    try:
        weight = _weigh(value, 1, bytes_max) if kind is dict or kind is list else _weigh([value], 0, bytes_max)  # type: ignore[arg-type]
    except _REFUSALS:
        raise _why_not(value) from None
    if weight & _SIZE > bytes_max:
        raise _too_large(bytes_max)
    raw = _encode(value) if weight < _EXACT else canonical_text(value).encode()
    if len(raw) > bytes_max:
        raise _too_large(bytes_max)
    return raw


def digest_of(raw: bytes) -> Digest:
    """The name of these bytes."""
    return Digest("sha256:" + sha256(raw).hexdigest())


# --- the strict walk ------------------------------------------------------------------------------------------------

_EXACT: Final = 1 << 60
"""Added to a weight when msgspec would not spell the value canonically: a fraction, or a key beyond ASCII."""
_SIZE: Final = _EXACT - 1
_HIGHEST: Final = INTEGER_MAX
_LOWEST: Final = -INTEGER_MAX
_EXPONENT_FROM: Final = 1e21
"""Below this a large fraction-less number is spelled as a whole one, and would read back as too large."""


class _RefusedError(Exception):
    """Not strict, somewhere; never leaves this file."""


_REFUSALS: Final = (_RefusedError, UnicodeEncodeError, TypeError)
"""What the quick walk ends with: our own word, half a surrogate pair, or a key that is not text."""


def _weigh(container: JsonObject | list[JsonValue], depth: int, bytes_max: int) -> int:
    """At least how many bytes a container takes, plus `_EXACT` for each reason to write it exactly.

    Measured before it is written, because bindings may put the same large value in many places. Keys are looked at
    together and kinds compared by identity: this is the most walked path of the codec.
    """
    items: Iterable[JsonValue] = container
    weight = len(container)
    if type(container) is dict:
        names = "".join(container)
        weight = 4 * weight + len(names)
        if not names.isascii():
            names.encode()
            weight += _EXACT
        items = container.values()
    for item in items:
        kind = type(item)
        if kind is str:
            weight += len(item) if item.isascii() else len(item.encode())  # type: ignore[union-attr,arg-type]
        elif kind is int:
            if item > _HIGHEST or item < _LOWEST:  # type: ignore[operator]
                raise _RefusedError
        elif kind is dict or kind is list:
            if depth == DEPTH_MAX:
                raise _RefusedError
            weight += _weigh(item, depth + 1, bytes_max)  # type: ignore[arg-type]
            if weight & _SIZE > bytes_max:
                raise _too_large(bytes_max)
        elif kind is float:
            weight += _weigh_fraction(item)  # type: ignore[arg-type]
        elif item is not None and kind is not bool:
            raise _RefusedError
    return weight


def _weigh_fraction(number: float) -> int:
    """Fractions of ordinary size are spelled alike by everyone; the others must be written exactly."""
    if not isfinite(number) or _HIGHEST < abs(number) < _EXPONENT_FROM:
        raise _RefusedError
    return 0 if 1e-4 <= abs(number) < 1e15 and number % 1 else _EXACT


def _why_not(value: JsonValue) -> NotJson:
    """Where and why the quick walk ended: the first reason, in the same order."""
    return NotJson(*next(_reasons(value, "", 1)))


def _too_large(bytes_max: int) -> NotJson:
    return NotJson("", f"the value has more than {bytes_max} bytes")


def _reasons(value: object, pointer: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, list | dict) and depth > DEPTH_MAX:
        yield pointer, f"nested more than {DEPTH_MAX} deep"
    elif type(value) is dict:
        yield from ((pointer, reason) for key in value if (reason := _key_reason(key)))
        for key, item in value.items():
            yield from _reasons(item, child(pointer, key), depth + 1)
    elif type(value) is list:
        for at, item in enumerate(value):
            yield from _reasons(item, child(pointer, at), depth + 1)
    elif reason := _scalar_reason(value):
        yield pointer, reason


def _key_reason(key: object) -> str | None:
    if type(key) is not str:
        return f"the key {key!r} is not text"
    return "a key holds half a surrogate pair" if _half_pair(key) else None


_TOO_LARGE_A_NUMBER: Final = "whole numbers end at 2^53; send larger ones as text"


def _scalar_reason(value: object) -> str | None:
    if value is None or type(value) is bool:
        return None
    if type(value) is str:
        return "half a surrogate pair is not a character" if _half_pair(value) else None
    if type(value) is int:
        return None if abs(value) <= INTEGER_MAX else _TOO_LARGE_A_NUMBER
    if type(value) is float and isfinite(value):
        return _TOO_LARGE_A_NUMBER if _HIGHEST < abs(value) < _EXPONENT_FROM else None
    if type(value) is float:
        return f"{value} is not a JSON number"
    return f"a {type(value).__name__} is not a JSON value"


def _half_pair(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# --- foreign JSON ---------------------------------------------------------------------------------------------------

_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)', re.DOTALL)
"""A string, closed or not: each character is looked at once, whatever the text."""
_BRACKET: Final = re.compile(r"[\[\]{}]")


def loads_strict(data: bytes | str, *, bytes_max: int = ARTIFACT_BYTES_MAX) -> JsonValue:
    """JSON from outside as a strict value; raises NotJson. Time and memory are bounded by the size of the text."""
    text = _decoded(data, bytes_max)
    skeleton = _STRING.sub('""', text)
    if _too_deep(skeleton):
        raise NotJson("", f"nested more than {DEPTH_MAX} deep")
    try:
        value = _decode(text)
    except UnicodeEncodeError:
        raise NotJson("", "half a surrogate pair is not a character") from None
    except msgspec.MsgspecError as error:
        raise NotJson("", f"not JSON: {error}".replace("JSON is malformed: ", "")) from None
    try:
        _weigh([value], 0, bytes_max)
    except _REFUSALS:
        raise _why_not(value) from None
    if skeleton.count(":") != _count_keys(value):
        raise NotJson("", f"the key {_repeated_key(text)} is given twice in one object")
    return value


def _decoded(data: bytes | str, bytes_max: int) -> str:
    if len(data) > bytes_max:
        raise _too_large(bytes_max)
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotJson("", f"not UTF-8 at byte {error.start}") from None


def _too_deep(skeleton: str) -> bool:
    """Whether brackets open too deep. In a text without strings every bracket counts."""
    if skeleton.count("[") + skeleton.count("{") <= DEPTH_MAX:
        return False
    depth = 0
    for match in _BRACKET.finditer(skeleton):
        depth += 1 if match[0] in "[{" else -1
        if depth > DEPTH_MAX:
            return True
    return False


def _count_keys(value: JsonValue) -> int:
    """Every `:` outside a string belongs to one key: fewer keys than that, and one was given twice."""
    count = 0
    pending: list[JsonValue] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            count += len(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return count


_TOKEN: Final = re.compile(rf"({_STRING.pattern})\s*(:?)|([\[{{])|([\]}}])", re.DOTALL)


def _repeated_key(text: str) -> str:
    """The first repeated key of a well-formed text."""
    seen: list[set[JsonValue]] = []
    for match in _TOKEN.finditer(text):
        if match[3]:
            seen.append(set())
        elif match[4]:
            seen.pop()
        elif match[2]:
            key = _decode(match[1])
            if key in seen[-1]:
                return match[1]
            seen[-1].add(key)
    raise AssertionError("called only when a key is repeated")
