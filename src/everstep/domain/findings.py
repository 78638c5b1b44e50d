"""What a check has found so far. Bounded, so that a hostile plan cannot make its own problems the attack."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from everstep.domain.problem import PROBLEMS_MAX, Problem, Severity
from everstep.domain.suggest import suggest

_GUESSES_MAX: Final = 25
"""A guess compares a name with hundreds of others, and only so many problems are shown."""


class Findings:
    """Problems in the order in which they were found."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._said: set[tuple[str, str, str]] = set()
        self._guesses: dict[tuple[str, str], str | None] = {}

    @property
    def full(self) -> bool:
        """Whether there is no point in looking further."""
        return len(self.problems) >= PROBLEMS_MAX

    def add(self, code: str, path: str, message: str, **more: Any) -> None:  # noqa: ANN401 -- the optional fields of a Problem
        """Note an error, once in each place; `more` are optional fields of the Problem."""
        said = (code, path, message)
        if not self.full and said not in self._said:
            self._said.add(said)
            self.problems.append(Problem(code=f"plan.{code}", path=path, message=message, **more))

    def warn(self, code: str, path: str, message: str, **more: Any) -> None:  # noqa: ANN401 -- as above
        """Note a warning."""
        self.add(code, path, message, severity=Severity.WARNING, **more)

    def guess(
        self, what: str, name: str, valid: Iterable[str], synonyms: Mapping[str, str] | None = None
    ) -> str | None:
        """What was probably meant by `name`; among the same kind of things each name is looked up once."""
        known = (what, name)
        if known not in self._guesses and len(self._guesses) < _GUESSES_MAX:
            self._guesses[known] = suggest(name, valid, synonyms)
        return self._guesses.get(known)
