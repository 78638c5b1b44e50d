"""Puts a JSON value together as a reader comes across its parts, with their places; shared by YAML and JSON.

What is refused is noted and the reading goes on, so that all problems come out at once. Nothing here recurses.
"""

from typing import Any, NoReturn, TypeAlias

from everstep.domain.problem import PROBLEMS_MAX, Problem
from everstep.domain.values import DEPTH_MAX, JsonObject, JsonValue
from everstep.wire.source import Located, Marks, Source, Spot

Container: TypeAlias = JsonObject | list[JsonValue]


class StopReadingError(Exception):
    """Nothing sensible can follow; caught by whoever began to read."""


class Builder:
    """A value in the making."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self._marks = Marks()
        self._value: JsonValue = None
        self._open: list[tuple[Container, int]] = []
        self._keys: list[str | None] = []
        self._key_spots: list[dict[str, int]] = []

    @property
    def in_map(self) -> bool:
        """Whether the innermost open container is a map."""
        return bool(self._open) and isinstance(self._open[-1][0], dict)

    @property
    def wants_key(self) -> bool:
        """Whether the next thing must be a key."""
        return self.in_map and self._keys[-1] is None

    def refuse(self, code: str, message: str, spot: Spot, **more: Any) -> None:  # noqa: ANN401 -- fields of a Problem
        """Note a problem of the text itself."""
        problem = Problem(code=f"plan.{code}", message=message, path="", **more)
        self.problems.append(self.source.placed(problem, spot))
        if len(self.problems) == PROBLEMS_MAX:
            raise StopReadingError

    def stop(self, code: str, message: str, spot: Spot, **more: Any) -> NoReturn:  # noqa: ANN401 -- fields of a Problem
        """Note a problem that ends the reading."""
        self.refuse(code, message, spot, **more)
        raise StopReadingError

    def key(self, key: str, spot: Spot) -> None:
        """A key of the innermost map."""
        at = self._marks.open(*spot)
        seen = self._key_spots[-1]
        if key in seen:
            line, _ = self.source.line_column(self._marks.spot(seen[key])[0])
            self.refuse("duplicate_key", f"'{key}' is already given on line {line}", spot)
        seen[key] = at
        self._keys[-1] = key

    def scalar(self, value: JsonValue, spot: Spot) -> None:
        """A value without parts."""
        self._marks.open(*spot)
        self._put(value)

    def open(self, container: Container, spot: Spot) -> None:
        """A list or map begins."""
        if len(self._open) == DEPTH_MAX:
            self.stop("too_large", f"nested more than {DEPTH_MAX} deep", spot)
        at = self._marks.open(*spot)
        self._put(container)
        self._open.append((container, at))
        self._keys.append(None)
        self._key_spots.append({})

    def close(self, end: int) -> None:
        """The innermost list or map ends."""
        _, at = self._open.pop()
        self._keys.pop()
        self._key_spots.pop()
        self._marks.close(at, end)

    def located(self) -> Located:
        """What was read."""
        if self._value is None:
            self._marks.open(0, 0)
        return Located(source=self.source, value=self._value, marks=self._marks)

    def _put(self, value: JsonValue) -> None:
        if not self._open:
            self._value = value
            return
        container = self._open[-1][0]
        if isinstance(container, list):
            container.append(value)
        else:
            key = self._keys[-1]
            assert key is not None, "a value in a map follows its key"
            container[key] = value
            self._keys[-1] = None
