"""What is wrong with a plan or its inputs: a value with its place, the same at every door.

The checker names places by JSON Pointer (and by offset inside a text); who has the source text adds line and column.
"""

from enum import StrEnum
from typing import Final

from everstep.domain.record import record

PROBLEMS_MAX: Final = 1_000
"""No more are kept: a plan with more problems is not a plan, and must not fill the memory."""


class Severity(StrEnum):
    """A warning does not stop a plan, unless somebody asked to be strict."""

    ERROR = "error"
    WARNING = "warning"


@record
class Problem:
    """One thing to repair. Lines and columns count from 1, in code points."""

    code: str
    message: str
    path: str
    severity: Severity = Severity.ERROR
    hint: str | None = None
    suggestion: str | None = None
    """What to write instead, if that can be guessed."""
    on_key: bool = False
    """The key at `path` is wrong, not its value."""
    span: tuple[int, int] | None = None
    """Which characters of the text at `path`."""
    other: str | None = None
    """The path of a second place the message speaks of, as `at <path>`."""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None


def worst(problems: tuple[Problem, ...], *, strict: bool = False) -> bool:
    """Whether these stop a plan."""
    return any(strict or problem.severity is Severity.ERROR for problem in problems)
