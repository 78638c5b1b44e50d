"""Where a character of a text stands in the source, whatever the quotes, escapes and folded lines between."""

import re
from collections.abc import Iterator
from typing import Final

BLOCK_SIGNS: Final = ("|", ">")
_QUOTES: Final = ('"', "'")
_CHANGING: Final = ("\\", "''", "\n", "\r")
"""Without these, every character stands for itself."""
_FOLD: Final = re.compile(r"[ \t]*(?:\r\n|\r|\n)(?:[ \t]*(?:\r\n|\r|\n))*[ \t]*")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|x..|u....|U........|(?:\r\n|\r|\n)[ \t]*|.)",
    re.DOTALL,
)


def offsets_in(raw: str, span: tuple[int, int]) -> tuple[int, int]:
    """The characters `span` of a text, as offsets in its spelling `raw`."""
    if not any(sign in raw for sign in _CHANGING):
        quoted = int(raw[:1] in _QUOTES)
        return span[0] + quoted, span[1] + quoted
    first = last = len(raw)
    for number, (start, end) in enumerate(_characters(raw)):
        if number == span[0]:
            first = start
        if number == span[1] - 1:
            last = end
            break
    return min(first, last), last


def binding_in_block(raw: str, text: str, offset: int) -> int:
    """The offset of the binding around `offset` in the spelling of a block scalar, which has no escapes.

    Indentation and folding change every other offset, but never how many `${` come before.
    """
    at = -1
    for _ in range(max(1, text.count("${", 0, offset + 2))):
        found = raw.find("${", at + 1)
        if found < 0:
            break
        at = found
    return max(at, 0)


def _characters(raw: str) -> Iterator[tuple[int, int]]:
    """Begin and end in the spelling for each character of the text."""
    quote = raw[:1] if raw[:1] in _QUOTES else ""
    at = len(quote)
    stop = len(raw) - len(quote)
    while at < stop:
        fold = _FOLD.match(raw, at, stop) if raw[at] in " \t\r\n" else None
        if fold is not None:
            breaks = len(_LINE_END.findall(fold[0]))
            yield from [(at, fold.end())] * (breaks - 1 or 1)
            at = fold.end()
            continue
        end = _end(raw, at, quote)
        if not (raw[at] == "\\" and quote == '"' and raw[at + 1] in "\r\n"):
            yield at, end
        at = end


def _end(raw: str, at: int, quote: str) -> int:
    if quote == '"' and raw[at] == "\\":
        escape = _ESCAPE.match(raw, at)
        return escape.end() if escape else at + 1
    if quote == "'" and raw[at] == "'":
        return at + 2
    return at + 1
