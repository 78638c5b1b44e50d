"""Plans: text in YAML or JSON to a plan whose problems know their line and column. Plans as JSON: `normal`.

A file is measured before it is looked at, and what could mean two things is refused before any value is made of it.
"""

import re
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from everstep.domain.problem import Problem
from everstep.wire.builder import Builder, StopReadingError
from everstep.wire.jsontext import read_json
from everstep.wire.normal import ReadPlan, digest, from_json, from_stored, to_json
from everstep.wire.source import Source

__all__ = ["PLAN_BYTES_MAX", "ReadPlan", "Syntax", "digest", "from_json", "from_stored", "read_plan", "to_json"]

PLAN_BYTES_MAX: Final = 256 * 1024
Syntax: TypeAlias = Literal["yaml", "json"]


def read_plan(data: bytes | str, *, file: str | None = None, syntax: Syntax | None = None) -> ReadPlan:
    """A plan from the text of a file. Without a syntax the name decides, then the first character."""
    text = _text(data, file)
    if isinstance(text, Problem):
        return ReadPlan(plan=None, problems=(text,))
    source = Source(text, file)
    builder = Builder(source)
    try:
        _read_text(builder, syntax or _guess(text, file))
    except StopReadingError:
        assert builder.problems, "who stops says why"
    if builder.problems:
        return ReadPlan(plan=None, problems=tuple(builder.problems), source=source)
    located = builder.located()
    read = from_json(located.value)
    return replace(
        read,
        problems=tuple(located.locate(problem) for problem in read.problems),
        source=source,
        located=located,
    )


def _read_text(builder: Builder, syntax: Syntax) -> None:
    _check_characters(builder, syntax)
    if syntax == "json":
        read_json(builder)
    else:
        from everstep.wire.yamltext import read_yaml  # noqa: PLC0415 -- slow, and most starts read none

        read_yaml(builder)


def _guess(text: str, file: str | None) -> Syntax:
    if file is not None and file.endswith((".json", ".yaml", ".yml")):
        return "json" if file.endswith(".json") else "yaml"
    return "json" if text.lstrip(" \t\r\n").startswith("{") else "yaml"


def _text(data: bytes | str, file: str | None) -> str | Problem:
    size = len(data) if isinstance(data, bytes) or len(data) > PLAN_BYTES_MAX else len(data.encode(errors="replace"))
    if size > PLAN_BYTES_MAX:
        message = f"{size} bytes, the limit is {PLAN_BYTES_MAX}"
        return Problem(code="plan.too_large", message=message, path="", file=file)
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 at byte {error.start}"
        return Problem(code="plan.bad_encoding", message=message, path="", file=file)


_CONTROLS: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
_REFUSED: Final[dict[Syntax, re.Pattern[str]]] = {
    "json": re.compile(f"[{_CONTROLS}]"),
    "yaml": re.compile(f"[{_CONTROLS}\u2028\u2029]"),
}
"""No controls in a file; in YAML also no character that some readers take for the end of a line."""


def _check_characters(builder: Builder, syntax: Syntax) -> None:
    found = _REFUSED[syntax].search(builder.source.text)
    if found is not None:
        name = f"U+{ord(found[0]):04X}"
        builder.stop("bad_encoding", f"{name} may not stand in a plan, write it as an escape", found.span())
