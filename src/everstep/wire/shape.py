"""Kinds of values in a plan: how each is read, written in normal form, and described to an editor.

A kind reads a plain JSON value and either gives what the domain wants or notes why not; it never raises, so that all
problems of a plan come out at once. The tables made of these kinds are in `keys`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from everstep.domain.ids import Millis
from everstep.domain.pointer import child
from everstep.domain.problem import PROBLEMS_MAX, Problem
from everstep.domain.quantities import DURATION_MS_MAX, format_duration, format_size, parse_duration, parse_size
from everstep.domain.record import record
from everstep.domain.suggest import suggest
from everstep.domain.values import JsonObject, JsonValue

Datum: TypeAlias = Any  # the value of a key: tables hold kinds of every type, and records take them apart again
Fields: TypeAlias = dict[str, Datum]


class Refused:
    """Instead of a value: a problem was noted."""


REFUSED: Final = Refused()
_NOUNS: Final = {dict: "a map", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


def noun(value: JsonValue) -> str:
    """What a value is, as a message says it."""
    return _NOUNS.get(type(value), "empty")


class Place:
    """Where a value stands, what it is called, and where its problems go.

    Made for every key of every plan that is read, and needed only when something is wrong: so it is cheap to make,
    and works out its pointer when asked.
    """

    __slots__ = ("_above", "_key", "_label", "notes")

    def __init__(
        self, notes: list[Problem], key: str | int = "", label: str = "", above: "Place | None" = None
    ) -> None:
        self.notes = notes
        self._above = above
        self._key = key
        self._label = label

    def at(self, key: str | int, label: str = "") -> "Place":
        """The place of a part of it."""
        return Place(self.notes, key, label, self)

    @property
    def pointer(self) -> str:
        """Its JSON Pointer."""
        return child(self._above.pointer, self._key) if self._above else ""

    @property
    def label(self) -> str:
        """As a message names it."""
        return self._label or f"'{self._key}'"

    def refuse(self, code: str, message: str, **more: Datum) -> Refused:
        """Note a problem here; `more` are optional fields of it."""
        if len(self.notes) < PROBLEMS_MAX:
            self.notes.append(Problem(code=f"plan.{code}", message=message, path=self.pointer, **more))
        return REFUSED

    def wrong(self, wanted: str, value: JsonValue) -> Refused:
        """The value is of another kind."""
        return self.refuse("bad_type", f"{self.label} must be {wanted}, not {noun(value)}")

    def bound(self) -> Refused:
        """There is a binding where the value must stand in the plan."""
        return self.refuse("binding_not_allowed", f"{self.label} must be written out")


class Kind(Protocol):
    """One kind of value."""

    def read(self, value: JsonValue, place: Place, /) -> Datum:
        """What the domain wants, or REFUSED."""

    def write(self, value: Datum, /) -> JsonValue:
        """The normal form."""

    def schema(self) -> JsonObject:
        """JSON Schema, draft-07; it may allow more than `read`, never less."""


@record
class Text:
    """Words for people; most may hold bindings, which the checker looks at."""

    chars_max: int | None = None

    def read(self, value: JsonValue, place: Place) -> str | Refused:
        if not isinstance(value, str):
            return place.wrong("text", value)
        if self.chars_max is not None and len(value) > self.chars_max:
            message = f"{place.label} has {len(value)} characters, the limit is {self.chars_max}"
            return place.refuse("too_large", message)
        return value

    def write(self, value: str) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {"type": "string"} if self.chars_max is None else {"type": "string", "maxLength": self.chars_max}


@record
class Word:
    """A name. Which names are good and known is the checker's business."""

    def read(self, value: JsonValue, place: Place) -> str | Refused:
        if not isinstance(value, str):
            return place.wrong("text", value)
        return place.bound() if "${" in value else value

    def write(self, value: str) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {"type": "string"}


@record
class OneOf:
    """One of a few words."""

    options: tuple[str, ...]
    make: Callable[[str], str] = str
    synonyms: Mapping[str, str] | None = None

    def read(self, value: JsonValue, place: Place) -> str | Refused:
        if not isinstance(value, str):
            return place.wrong(self._listed(), value)
        if value in self.options:
            return self.make(value)
        if "${" in value:
            return place.bound()
        guess = suggest(value, self.options, self.synonyms)
        return place.refuse("bad_value", f"{place.label} must be {self._listed()}, not '{value}'", suggestion=guess)

    def _listed(self) -> str:
        return f"{', '.join(self.options[:-1])} or {self.options[-1]}"

    def write(self, value: str) -> JsonValue:
        return str(value)

    def schema(self) -> JsonObject:
        return {"type": "string", "enum": [*self.options]}


@record
class Whole:
    """A whole number."""

    least: int
    most: int

    def read(self, value: JsonValue, place: Place) -> int | Refused:
        if isinstance(value, str) and "${" in value:
            return place.bound()
        if not isinstance(value, int) or isinstance(value, bool):
            return place.wrong("a whole number", value)
        if not self.least <= value <= self.most:
            return place.refuse("bad_value", f"{place.label} must be {self.least} to {self.most}, not {value}")
        return value

    def write(self, value: int) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@record
class Number:
    """A number from `least` on."""

    least: int

    def read(self, value: JsonValue, place: Place) -> float | Refused:
        if isinstance(value, str) and "${" in value:
            return place.bound()
        if not isinstance(value, int | float) or isinstance(value, bool):
            return place.wrong("a number", value)
        if value < self.least:
            return place.refuse("bad_value", f"{place.label} must be at least {self.least}, not {value}")
        return value

    def write(self, value: float) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {"type": "number", "minimum": self.least}


@record
class Flag:
    """`true` or `false`."""

    def read(self, value: JsonValue, place: Place) -> bool | Refused:
        if isinstance(value, str) and "${" in value:
            return place.bound()
        return value if isinstance(value, bool) else place.wrong("true or false", value)

    def write(self, value: bool) -> JsonValue:  # noqa: FBT001 -- the flag is the value
        return value

    def schema(self) -> JsonObject:
        return {"type": "boolean"}


@record
class Duration:
    """`30s`."""

    most_ms: Millis = DURATION_MS_MAX

    def read(self, value: JsonValue, place: Place) -> Millis | Refused:
        if not isinstance(value, str):
            return place.wrong("a duration such as 30s", value)
        if "${" in value:
            return place.bound()
        length = parse_duration(value)
        if length is None:
            return place.refuse("bad_value", f"'{value}' is not a duration, write 500ms, 30s, 1h30m")
        if length > self.most_ms:
            return place.refuse("bad_value", f"{place.label} is at most {format_duration(self.most_ms)}")
        return length

    def write(self, value: Millis) -> JsonValue:
        return format_duration(value)

    def schema(self) -> JsonObject:
        return {"type": "string", "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$", "minLength": 2}


@record
class Size:
    """`512MB`."""

    def read(self, value: JsonValue, place: Place) -> int | Refused:
        if not isinstance(value, str):
            return place.wrong("a size such as 512MB", value)
        if "${" in value:
            return place.bound()
        size = parse_size(value)
        if size is None:
            return place.refuse("bad_value", f"'{value}' is not a size, write 100KB, 512MB, 2GiB")
        return size

    def write(self, value: int) -> JsonValue:
        return format_size(value)

    def schema(self) -> JsonObject:
        return {"type": "string", "pattern": "^[0-9]+(B|KB|MB|GB|KiB|MiB|GiB)$"}


@record
class Anything:
    """Any JSON; texts in it may hold bindings."""

    def read(self, value: JsonValue, place: Place) -> JsonValue:  # noqa: ARG002 -- nothing is wrong with any value
        return value

    def write(self, value: JsonValue) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {}


@record
class Object:
    """A map, kept as it is."""

    def read(self, value: JsonValue, place: Place) -> JsonObject | Refused:
        return value if isinstance(value, dict) else place.wrong("a map", value)

    def write(self, value: JsonObject) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {"type": "object"}


@record
class Bound:
    """A value of one type, or a text that binds one: `when`, `for_each`, `done_when`."""

    type: type[bool] | type[list[JsonValue]]
    wanted: str
    schema_type: str

    def read(self, value: JsonValue, place: Place) -> JsonValue | Refused:
        if isinstance(value, self.type) or (isinstance(value, str) and "${" in value):
            return value
        inner = value.strip() if isinstance(value, str) else ""
        guess = f"${{{inner[2:-2].strip()}}}" if inner.startswith("{{") and inner.endswith("}}") else None
        message = f"{place.label} must be {self.wanted}, not {noun(value)}"
        return place.refuse("bad_type", message, suggestion=guess)

    def write(self, value: JsonValue) -> JsonValue:
        return value

    def schema(self) -> JsonObject:
        return {"anyOf": [{"type": self.schema_type}, {"type": "string", "pattern": "\\$\\{"}]}
