"""Strict JSON (RFC 8259) with the place of every value. Linear, never recursive, no repeated keys."""

import re
from math import isfinite
from typing import Final, NoReturn

import msgspec

from everstep.domain.values import INTEGER_MAX, JsonValue
from everstep.wire.builder import Builder
from everstep.wire.source import Spot

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TOKEN: Final = re.compile(
    r"""("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+")
      | (-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (true|false|null)
      | ([\[\]{},:])""",
    re.VERBOSE,
)
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None}
_CLOSING: Final = {"]": False, "}": True}


def read_json(builder: Builder) -> None:
    """Read the builder's source into it; may stop in the middle."""
    _Reader(builder).read()


class _Reader:
    """What may come next is one of a few words: value, key, colon, comma, or the end."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._text = builder.source.text
        self._depth = 0
        self._next = "a value"
        self._may_close = False

    def read(self) -> None:
        at = self._skip(0)
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastindex is None:
                self._unreadable(at)
            self._take(match[match.lastindex], match.lastindex, (at, match.end()))
            at = self._skip(match.end())
        if self._next != "the end":
            end = len(self._text)
            self._builder.stop("bad_syntax", f"the text ends where {self._next} is expected", (max(0, end - 1), end))

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return space.end() if space else at

    def _take(self, word: str, kind: int, spot: Spot) -> None:
        if self._may_close and word in _CLOSING and _CLOSING[word] == self._builder.in_map:
            self._close(spot)
        elif self._next == "a key" and kind == 1:
            self._builder.key(self._string(word, spot), spot)
            self._expect("':'")
        elif self._next == "':'" and word == ":":
            self._expect("a value")
        elif self._next.startswith("','") and word == ",":
            self._expect("a key" if self._builder.in_map else "a value")
        elif self._next == "a value" and word in ("[", "{"):
            self._open(word, spot)
        elif self._next == "a value" and kind < 4:
            self._builder.scalar(self._scalar(word, kind, spot), spot)
            self._after_value()
        else:
            self._builder.stop("bad_syntax", f"expected {self._next}, not '{word[:20]}'", spot)

    def _expect(self, what: str, *, may_close: bool = False) -> None:
        self._next = what
        self._may_close = may_close

    def _open(self, word: str, spot: Spot) -> None:
        self._depth += 1
        if word == "{":
            self._builder.open({}, spot)
            self._expect("a key", may_close=True)
        else:
            self._builder.open([], spot)
            self._expect("a value", may_close=True)

    def _close(self, spot: Spot) -> None:
        self._depth -= 1
        self._builder.close(spot[1])
        self._after_value()

    def _after_value(self) -> None:
        if self._depth == 0:
            self._expect("the end")
        else:
            self._expect("',' or '}'" if self._builder.in_map else "',' or ']'", may_close=True)

    def _scalar(self, word: str, kind: int, spot: Spot) -> JsonValue:
        if kind == 1:
            return self._string(word, spot)
        if kind == 3:
            return _WORDS[word]
        if word.lstrip("-").isdigit():
            return self._whole(word, spot)
        number = float(word)
        if not isfinite(number):
            self._builder.refuse("bad_number", f"{word[:20]} is too large for a number", spot)
        return number

    def _whole(self, word: str, spot: Spot) -> JsonValue:
        if len(word) > 17 or abs(int(word)) > INTEGER_MAX:
            self._builder.refuse("bad_number", "whole numbers end at 2^53, write larger ones as text", spot)
            return 0
        return int(word)

    def _string(self, word: str, spot: Spot) -> str:
        try:
            text = msgspec.json.decode(word, type=str)
        except (msgspec.DecodeError, UnicodeEncodeError):
            self._builder.refuse("bad_encoding", "half a surrogate pair is not a character", spot)
            return ""
        return text

    def _unreadable(self, at: int) -> NoReturn:
        character = self._text[at]
        message = f"{character!r} does not belong here"
        if character == '"':
            message = "this text has no end, or holds a line break or an unknown escape"
        elif character == "'":
            message = 'JSON writes texts in "double quotes"'
        elif self._text.startswith(("//", "/*", "#"), at):
            message = "JSON has no comments"
        self._builder.stop("bad_syntax", message, (at, at + 1))
