"""Secrets by value: whatever is written, shown or bound holds `[secret:NAME]` in their place.

A value is found as it is and in the forms programs give it: base64 at any offset, hexadecimal, escaped for URLs, JSON
or HTML, as UTF-16, and broken into lines. Names of keys and patterns are no help: providers echo credentials anywhere.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

from everstep.domain.values import JsonValue

BYTES_MIN: Final = 8
"""A shorter value would be found everywhere."""
_SPACE: Final = re.compile(r"\s+")
_FORM_CHARS_MIN: Final = 6
_IN_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ATTRIBUTES: Final = _IN_HTML | str.maketrans({'"': "&quot;", "'": "&#x27;"})


class Redactor:
    """Knows all secrets of an engine; none: it changes nothing and costs nothing."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        for name, value in (secrets or {}).items():
            self.add(name, value)

    def __bool__(self) -> bool:
        return self._pattern is not None

    def add(self, name: str, value: str) -> None:
        """Know one more; running calls are redacted too."""
        if len(value.encode()) < BYTES_MIN:
            raise ValueError(f"the secret '{name}' has less than {BYTES_MIN} bytes: it could not be kept out of texts")
        for form in forms(value):
            self._names.setdefault(form, name)
        known = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(form) for form in known), re.IGNORECASE)
        self._longest = max(map(len, known))

    def text(self, text: str) -> str:
        """The text without them."""
        if self._pattern is None or len(text) < _FORM_CHARS_MIN:
            return text
        found = [*self._found(text)]
        for start, end, name in reversed(found):
            text = f"{text[:start]}[secret:{name}]{text[end:]}"
        return text

    def value(self, value: JsonValue) -> JsonValue:
        """The value without them; the same object if there is none."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Places in the text; white space inside a value does not hide it."""
        assert self._pattern is not None
        compact, at = text, None
        if _SPACE.search(text):
            at = [index for index, character in enumerate(text) if not character.isspace()]
            compact = "".join(text[index] for index in at)
        for match in self._pattern.finditer(compact):
            start, end = match.span()
            name = self._name(match[0])
            yield (start, end, name) if at is None else (at[start], at[end - 1] + 1, name)

    def _name(self, form: str) -> str:
        found = self._names.get(form)
        if found is None:  # written in another case
            found = next(name for known, name in self._names.items() if known.casefold() == form.casefold())
        return found

    def stream(self) -> "RedactedStream":
        """For text that comes in pieces: a value may lie across any boundary."""
        return RedactedStream(self)

    @property
    def reach(self) -> int:
        """How many characters, white space not counted, may belong to one value."""
        return self._longest


class RedactedStream:
    """Gives out what can no longer be the beginning of a value."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """What is safe to show by now."""
        self._held += piece
        if not self._redactor:
            held, self._held = self._held, ""
            return held
        safe = self._redactor.text(self._held)
        keep = self._tail(safe)
        out, self._held = safe[: len(safe) - keep], safe[len(safe) - keep :]
        return out

    def close(self) -> str:
        """The rest."""
        rest, self._held = self._redactor.text(self._held), ""
        return rest

    def _tail(self, text: str) -> int:
        """How many characters at the end may yet become a value."""
        wanted, keep = self._redactor.reach - 1, 0
        for character in reversed(text):
            if not character.isspace():
                if wanted == 0:
                    break
                wanted -= 1
            keep += 1
        return keep


def forms(value: str) -> frozenset[str]:
    """The ways a value is spelled, without white space."""
    raw = value.encode()
    found = {value, quote(value, safe=""), quote(value), quote_plus(value), value.translate(_IN_ATTRIBUTES), raw.hex()}
    found |= {
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(value)[1:-1].replace("/", "\\/"),
    }
    found |= {"\0".join(value), value.translate(_IN_HTML), raw.decode("latin-1")}
    found |= {value.encode(wide).decode("latin-1") for wide in ("utf-16-le", "utf-16-be")}
    found |= {"".join(f"&#{ord(character)};" for character in value), "".join(f"%{byte:02x}" for byte in raw)}
    for data in (raw, value.encode("utf-16-le"), value.encode("utf-16-be")):
        found |= set(_base64_forms(data))
    found |= {value.encode("utf-16-le").hex(), value.encode("utf-16-be").hex()}
    compact = {_SPACE.sub("", form) for form in found}
    return frozenset(form for form in compact if len(form) >= _FORM_CHARS_MIN)


def _base64_forms(data: bytes) -> Iterator[str]:
    """The characters that stand for these bytes alone, wherever they begin in a longer text."""
    for offset in range(3):
        encoded = b64encode(b"\0" * offset + data).decode()
        first = (offset * 8 + 5) // 6 if offset else 0
        last = (offset + len(data)) * 8 // 6
        plain = encoded[first:last]
        yield plain
        yield plain.replace("+", "-").replace("/", "_")
