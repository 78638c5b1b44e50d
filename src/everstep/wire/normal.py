"""Plans: a JSON object or the text of a file in, `PlanSpec` with located problems out; and the normal form back.

The normal form is what a digest names: short forms expanded, durations and sizes canonical, what was not said left
out, arguments untouched. A plan that was stored is read back by the same tables that checked it on its way in.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from everstep.domain.ids import Digest
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import PROBLEMS_MAX, Problem
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.builder import Builder, StopReadingError
from everstep.wire.echoes import without_echoes
from everstep.wire.jsontext import read_json
from everstep.wire.keys import PLAN
from everstep.wire.shape import Place
from everstep.wire.source import Located, Source
from everstep.wire.values import canonical, digest_of
from everstep.wire.yamltext import read_yaml

PLAN_BYTES_MAX: Final = 256 * 1024
Syntax: TypeAlias = Literal["yaml", "json"]


@record
class ReadPlan:
    """What came of reading: the plan, or the problems that kept it from being one."""

    plan: PlanSpec | None
    problems: tuple[Problem, ...]
    source: Source | None = None
    draft: PlanSpec | None = None
    """What could be read of a refused plan, good only for finding its other problems."""
    located: Located | None = None

    def checked(self, check: Callable[[PlanSpec], Iterable[Problem]]) -> tuple[Problem, ...]:
        """All problems at once: those of the shape, and what `check` finds; with line and column, by position."""
        if self.plan is not None:
            return self._located(check(self.plan))
        found = () if self.draft is None else without_echoes(check(self.draft), self.problems, self.draft)
        return self._located((*self.problems, *found))

    def _located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Without a text problems keep their paths, and their order."""
        if self.located is None:
            return tuple(problems)
        placed = [problem if problem.line else self.located.locate(problem) for problem in problems]
        return tuple(sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0)))


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


def from_json(value: JsonValue) -> ReadPlan:
    """A plan from a JSON value: short or long forms, as in a file. Strict JSON is the caller's promise."""
    notes: list[Problem] = []
    plan: PlanSpec = PLAN.read(value, Place(notes, label="the plan"))
    if notes:
        return ReadPlan(plan=None, draft=plan, problems=tuple(notes[:PROBLEMS_MAX]))
    return ReadPlan(plan=plan, problems=())


def to_json(plan: PlanSpec) -> JsonObject:
    """The normal form."""
    return PLAN.write(plan)


def digest(plan: PlanSpec) -> Digest:
    """The name of a plan: equal for equal normal forms, whatever the spelling was."""
    return digest_of(canonical(to_json(plan)))
