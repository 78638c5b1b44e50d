"""What a type hint means in JSON: a schema, and the way from a JSON value to the Python value.

The facts and their small tools; how a hint is read is `hints`.
"""

import typing
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, Literal, NoReturn, TypeAlias

from everstep.authoring.dump import dump
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.function import Load

Kind: TypeAlias = Literal["literal", "checked", "opaque", "secret"]


@record
class Shape:
    """What a hint means in JSON."""

    schema: JsonObject
    kinds: frozenset[type]
    """The Python types of its JSON values."""
    load: Load | None = None
    """None: the JSON value is the Python value."""
    plain: bool = True
    """Results of this hint are JSON as they are."""


@record
class Place:
    """Where a hint stands, for messages, and the classes around it."""

    text: str
    within: tuple[type, ...] = ()

    def refuse(self, problem: str) -> NoReturn:
        """Say what is wrong here."""
        raise TypeError(f"{self.text}: {problem}")

    def inside(self, cls: type) -> "Place":
        """The same place, one class deeper."""
        if cls in self.within:
            self.refuse(f"{cls.__name__} contains itself, which has no closed schema; use dict[str, Any] there")
        return Place(text=self.text, within=(*self.within, cls))


class Arg:
    """Details of one argument: `Annotated[str, Arg("Page to read", kind="checked", format="uri")]`."""

    __slots__ = ("schema",)

    def __init__(
        self,
        description: str | None = None,
        *,
        kind: Kind | None = None,
        title: str | None = None,
        format: str | None = None,
        pattern: str | None = None,
        minimum: float | None = None,
        maximum: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        min_items: int | None = None,
        max_items: int | None = None,
        examples: Sequence[JsonValue] | None = None,
    ) -> None:
        if kind is not None and kind not in typing.get_args(Kind):
            raise TypeError(f"no argument kind {kind!r}; there are {', '.join(typing.get_args(Kind))}")
        said: JsonObject = {
            "description": description,
            "x-everstep-kind": kind,
            "title": title,
            "format": format,
            "pattern": pattern,
            "minimum": minimum,
            "maximum": maximum,
            "minLength": min_length,
            "maxLength": max_length,
            "minItems": min_items,
            "maxItems": max_items,
            "examples": None if examples is None else list(examples),
        }
        self.schema: JsonObject = {key: value for key, value in said.items() if value is not None}


def object_schema(properties: JsonObject, required: Iterable[str]) -> JsonObject:
    """A closed object."""
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    if names := list(required):
        schema["required"] = list(names)
    return schema


def hints_of(owner: object, place: Place) -> dict[str, Any]:
    """The annotations of a class or a function, with every name in them looked up."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError as exc:
        place.refuse(f"the hint {exc.name!r} cannot be looked up; import it at module level, not under TYPE_CHECKING")


def default_of(value: object) -> JsonObject:
    """The schema's `default` for a Python default, if JSON can say it."""
    return {"default": dump(value)} if value is None or isinstance(value, str | int | float | Enum) else {}


def loads_of(shapes: dict[str, Shape]) -> tuple[tuple[str, Load], ...]:
    """The fields whose Python value differs from the JSON value."""
    return tuple((name, shape.load) for name, shape in shapes.items() if shape.load is not None)


def load_fields(values: dict[str, Any], loads: tuple[tuple[str, Load], ...]) -> dict[str, Any]:
    """A copy of `values` with those fields loaded."""
    loaded = dict(values)
    for name, load in loads:
        if name in loaded:
            loaded[name] = load(loaded[name])
    return loaded


def without_references(schema: JsonObject, place: Place) -> JsonObject:
    """A schema that can stand inside another: every `#/$defs/X` replaced by what it points to."""
    definitions = typing.cast("dict[str, JsonObject]", schema.get("$defs") or {})

    def inline(value: JsonValue, within: tuple[str, ...]) -> JsonValue:
        if isinstance(value, list):
            return [inline(item, within) for item in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        rest: JsonObject = {key: inline(item, within) for key, item in value.items() if key not in {"$defs", "$ref"}}
        if not isinstance(reference, str):
            return rest
        name = reference.removeprefix("#/$defs/")
        if name in within or name not in definitions:
            place.refuse(f"{name} contains itself, which has no closed schema; use dict[str, Any] there")
        return typing.cast("JsonObject", inline(definitions[name], (*within, name))) | rest

    return typing.cast("JsonObject", inline(schema, ()))
