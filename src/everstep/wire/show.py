"""Problems as people and programs read them: a few lines with a caret, or JSON."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from everstep.domain.problem import Problem, Severity
from everstep.domain.values import JsonObject
from everstep.wire.source import Source

SHOWN_MAX: Final = 20
_LINE_CHARS_MAX: Final = 200
_FIELDS: Final = ("file", "line", "column", "end_column", "hint", "suggestion")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that move, hide or turn around what stands beside them."""


def to_json(problem: Problem) -> JsonObject:
    """One problem as an object; what is not known is null."""
    fields: JsonObject = {
        "code": problem.code,
        "severity": problem.severity.value,
        "message": problem.message,
        "path": problem.path,
    }
    return fields | {name: getattr(problem, name) for name in _FIELDS}


def show(problems: Iterable[Problem], source: Source | None = None) -> str:
    """All problems with their lines; the first twenty are shown, the rest is counted."""
    listed = [*problems]
    lines = [line for problem in listed[:SHOWN_MAX] for line in _lines(problem, source)]
    if len(listed) > SHOWN_MAX:
        rest = len(listed) - SHOWN_MAX
        lines.append(f"… and {rest} more problem{'s' if rest > 1 else ''}")
    return "".join(f"{line}\n" for line in lines)


def _lines(problem: Problem, source: Source | None) -> Iterator[str]:
    warning = "warning: " if problem.severity is Severity.WARNING else ""
    yield f"{_place(problem)}{warning}{escaped(problem.message)}  [{problem.code}]"
    if source is not None and problem.line is not None:
        yield from _excerpt(problem, source.line(problem.line))
    if problem.suggestion is not None:
        yield f"       = did you mean '{escaped(problem.suggestion)}'?"
    if problem.hint is not None:
        yield f"       = {escaped(problem.hint)}"


def _place(problem: Problem) -> str:
    if problem.line is None:
        where = ":".join(part for part in (problem.file, problem.path) if part)
        return f"{escaped(where)}  " if where else ""
    numbers = [str(number) for number in (problem.line, problem.column) if number is not None]
    return ":".join([escaped(problem.file or "plan"), *numbers]) + "  "


def _excerpt(problem: Problem, line: str) -> Iterator[str]:
    """The line, and carets below the columns; tabs are copied, so both lines move alike."""
    assert problem.line is not None, "only problems with a line have an excerpt"
    shown, widths = _escaped_widths(line[:_LINE_CHARS_MAX])
    yield f"{problem.line:>6} | {shown}"
    if problem.column is None or problem.column > len(widths) + 1:
        return
    before = "".join("\t" if line[at] == "\t" else " " * widths[at] for at in range(problem.column - 1))
    last = min((problem.end_column or problem.column + 1) - 1, len(widths))
    carets = sum(widths[problem.column - 1 : last])
    yield f"       | {before}{'^' * max(1, carets)}"


def escaped(text: str) -> str:
    """Text that shows what it is: control, bidi and other invisible characters as escapes."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def _escaped_widths(line: str) -> tuple[str, list[int]]:
    pieces = ["\t" if character == "\t" else _visible(character) for character in line]
    return "".join(pieces), [_width(piece) for piece in pieces]


def _width(piece: str) -> int:
    """How many columns of a terminal a character takes."""
    if len(piece) > 1:
        return len(piece)
    if unicodedata.combining(piece):
        return 0
    return 2 if unicodedata.east_asian_width(piece) in "WF" else 1


_PLAIN: Final = re.compile(r"[\x20-\x7e]")


def _visible(character: str) -> str:
    if _PLAIN.fullmatch(character) or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
