"""Type hints -> JSON Schema, and the way from a JSON value to the Python value a hint promises.

Worked out once, when a tool is decorated; a hint without a JSON meaning is refused there, at import, with the place
and a way out. Pydantic models are understood when their module is loaded already; nothing is imported for them.
"""

import sys
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, Literal, NoReturn

from everstep.authoring.shape import (
    Arg,
    Place,
    Shape,
    default_of,
    hints_of,
    load_fields,
    loads_of,
    object_schema,
    without_references,
)
from everstep.domain.handles import Secret
from everstep.domain.values import JsonObject
from everstep.ports.function import Load

_JSON_TYPES: Final = frozenset({type(None), bool, int, float, str, list, dict})
_WRONG_VALUE: Final = (ValueError, TypeError, KeyError)


def shape_of(hint: object, place: Place) -> Shape:
    """What `hint` means in JSON; TypeError if it means nothing."""
    origin = typing.get_origin(hint)
    if origin is not None:
        maker = _GENERICS.get(origin)
        return maker(typing.get_args(hint), place) if maker else _unsupported(hint, place)
    if isinstance(hint, typing.NewType):
        return shape_of(hint.__supertype__, place)
    if type(hint).__name__ == "TypeAliasType":  # `type X = …`, from Python 3.12
        return shape_of(typing.cast("Any", hint).__value__, place)
    if hint is None or hint is Any:
        return _SCALARS[hint]
    if isinstance(hint, type):
        return _SCALARS.get(hint) or _class(hint, place)
    return _unsupported(hint, place)


def _unsupported(hint: object, place: Place) -> NoReturn:
    name = getattr(hint, "__name__", None) or str(hint)
    origin = typing.get_origin(hint)
    advice = _INSTEAD.get(getattr(origin, "__name__", None) or name, "use JSON types, a dataclass or a TypedDict")
    place.refuse(f"the hint {name} has no JSON form; {advice}")


_INSTEAD: Final = {
    "bytes": "use str, or Artifact for binary data",
    "bytearray": "use str, or Artifact for binary data",
    "Decimal": "use str or float",
    "timedelta": "use float, in seconds",
    "time": "use str",
    "complex": "use two floats",
} | dict.fromkeys(("set", "frozenset", "Sequence", "Iterable", "Iterator", "Collection", "deque"), "use list[T]")


# --- scalars: what needs no look inside ---


def _load_datetime(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; write it as 2026-01-31T12:00:00Z")
    return moment


_ANYTHING: Final = Shape(schema={}, kinds=_JSON_TYPES, plain=False)
_SCALARS: Final[dict[object, Shape]] = {
    str: Shape(schema={"type": "string"}, kinds=frozenset({str})),
    int: Shape(schema={"type": "integer"}, kinds=frozenset({int})),
    float: Shape(schema={"type": "number"}, kinds=frozenset({int, float})),
    bool: Shape(schema={"type": "boolean"}, kinds=frozenset({bool})),
    None: Shape(schema={"type": "null"}, kinds=frozenset({type(None)})),
    type(None): Shape(schema={"type": "null"}, kinds=frozenset({type(None)})),
    list: Shape(schema={"type": "array"}, kinds=frozenset({list}), plain=False),
    dict: Shape(schema={"type": "object"}, kinds=frozenset({dict}), plain=False),
    tuple: Shape(schema={"type": "array"}, kinds=frozenset({list}), load=tuple, plain=False),
    datetime: Shape(
        schema={"type": "string", "format": "date-time"}, kinds=frozenset({str}), load=_load_datetime, plain=False
    ),
    date: Shape(
        schema={"type": "string", "format": "date"}, kinds=frozenset({str}), load=date.fromisoformat, plain=False
    ),
    Secret: Shape(
        schema={"type": "string", "x-everstep-kind": "secret"}, kinds=frozenset({str}), load=Secret, plain=False
    ),
    object: _ANYTHING,
    Any: _ANYTHING,
}


# --- generics: list[T], T | None, Literal[…], Annotated[…] ---


def _list(args: tuple[Any, ...], place: Place) -> Shape:
    if not args:
        return _SCALARS[list]
    item = shape_of(args[0], place)
    load = item.load
    return Shape(
        schema={"type": "array", "items": item.schema},
        kinds=frozenset({list}),
        load=None if load is None else lambda values: [load(value) for value in values],
        plain=item.plain,
    )


def _dict(args: tuple[Any, ...], place: Place) -> Shape:
    if not args:
        return _SCALARS[dict]
    if args[0] is not str:
        place.refuse("keys of a JSON object are text; use dict[str, T]")
    item = shape_of(args[1], place)
    load = item.load
    return Shape(
        schema={"type": "object", "additionalProperties": item.schema},
        kinds=frozenset({dict}),
        load=None if load is None else lambda values: {key: load(value) for key, value in values.items()},
        plain=item.plain,
    )


def _tuple(args: tuple[Any, ...], place: Place) -> Shape:
    if len(args) == 2 and args[1] is Ellipsis:
        items = _list(args[:1], place)
        load = items.load
        whole: Load = tuple if load is None else lambda values: tuple(typing.cast("list[object]", load(values)))
        return Shape(schema=items.schema, kinds=frozenset({list}), load=whole, plain=False)
    members = [shape_of(arg, place) for arg in args]
    loads = [member.load or _same for member in members]
    count = len(members)
    return Shape(
        schema={
            "type": "array",
            "prefixItems": [member.schema for member in members],
            "items": False,
            "minItems": count,
            "maxItems": count,
        },
        kinds=frozenset({list}),
        load=lambda values: tuple(load(value) for load, value in zip(loads, values, strict=True)),
        plain=False,
    )


def _same(value: object) -> object:
    return value


def _literal(args: tuple[Any, ...], place: Place) -> Shape:
    return _one_of(list(args), place)


def _one_of(values: list[Any], place: Place) -> Shape:
    kinds = frozenset(type(value) for value in values)
    if not kinds <= _JSON_TYPES - {list, dict, float}:
        place.refuse("choices must be text, integers, booleans or None")
    schema: JsonObject = {"enum": values}
    if kinds == {str}:
        schema["type"] = "string"
    return Shape(schema=schema, kinds=kinds)


def _union(args: tuple[Any, ...], place: Place) -> Shape:
    members = [shape_of(arg, place) for arg in args]
    kinds = frozenset[type]().union(*(member.kinds for member in members))
    # The more particular reading first: `str | UUID` gives a UUID where the text is one.
    tries = sorted(members, key=lambda member: member.load is None)
    return Shape(
        schema=_any_of([member.schema for member in members]),
        kinds=kinds,
        load=None if tries[0].load is None else lambda value: _load_first(tries, value),
        plain=all(member.plain for member in members),
    )


def _any_of(schemas: list[JsonObject]) -> JsonObject:
    if all(schema.keys() == {"type"} for schema in schemas):  # a message about types reads better than one about anyOf
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": list(schemas)}


def _load_first(tries: list[Shape], value: object) -> object:
    for shape in tries:
        if type(value) not in shape.kinds:
            continue
        if shape.load is None:
            return value
        try:
            return shape.load(value)
        except _WRONG_VALUE:
            continue
    raise ValueError(f"{value!r} fits none of the types")


def _annotated(args: tuple[Any, ...], place: Place) -> Shape:
    shape = shape_of(args[0], place)
    said: JsonObject = {}
    for detail in args[1:]:
        if isinstance(detail, Arg):
            said |= detail.schema
    if not said:
        return shape
    return Shape(schema=shape.schema | said, kinds=shape.kinds, load=shape.load, plain=shape.plain)


def _inner(args: tuple[Any, ...], place: Place) -> Shape:
    return shape_of(args[0], place)


_GENERICS: Final[dict[object, Callable[[tuple[Any, ...], Place], Shape]]] = {
    list: _list,
    dict: _dict,
    tuple: _tuple,
    Literal: _literal,
    typing.Union: _union,
    types.UnionType: _union,
    typing.Annotated: _annotated,
    typing.Required: _inner,
    typing.NotRequired: _inner,
}


# --- classes ---


def _class(hint: type, place: Place) -> Shape:
    if typing.is_typeddict(hint):
        return _typed_dict(hint, place.inside(hint))
    if is_dataclass(hint):
        return _dataclass(hint, place.inside(hint))
    if issubclass(hint, Enum):
        shape = _one_of([member.value for member in hint], place)
        return Shape(schema=shape.schema, kinds=shape.kinds, load=hint, plain=False)
    if issubclass(hint, PurePath):
        return Shape(schema={"type": "string"}, kinds=frozenset({str}), load=hint, plain=False)
    if (hint.__module__, hint.__name__) == ("uuid", "UUID"):
        return Shape(schema={"type": "string", "format": "uuid"}, kinds=frozenset({str}), load=hint, plain=False)
    if _is_pydantic(hint):
        model = typing.cast("Any", hint)
        schema = without_references(model.model_json_schema(), place)
        return Shape(schema=schema, kinds=frozenset({dict}), load=model.model_validate, plain=False)
    return _unsupported(hint, place)


def _typed_dict(hint: type, place: Place) -> Shape:
    hints = hints_of(hint, place)
    keys = typing.cast("frozenset[str]", hint.__dict__["__required_keys__"])
    marks = {typing.Required: True, typing.NotRequired: False}
    required = [name for name, inner in hints.items() if marks.get(typing.get_origin(inner), name in keys)]
    shapes = {name: shape_of(inner, place) for name, inner in hints.items()}
    loads = loads_of(shapes)

    def load(values: dict[str, Any]) -> object:
        if not values.keys() <= shapes.keys() or not values.keys() >= set(required):
            raise ValueError(f"not a {hint.__name__}")
        return load_fields(values, loads)

    return Shape(
        schema=object_schema({name: shape.schema for name, shape in shapes.items()}, required),
        kinds=frozenset({dict}),
        load=load if loads else None,
        plain=all(shape.plain for shape in shapes.values()),
    )


def _dataclass(hint: type, place: Place) -> Shape:
    described = fields(hint)
    hints = hints_of(hint, place)
    shapes = {field.name: shape_of(hints[field.name], place) for field in described}
    loads = loads_of(shapes)
    properties: JsonObject = {}
    for field in described:
        if not field.init:
            place.refuse(f"{hint.__name__}.{field.name} has init=False, so JSON cannot give it back; leave it out")
        properties[field.name] = shapes[field.name].schema | default_of(field.default)
    return Shape(
        schema=object_schema(properties, (field.name for field in described if _is_required(field))),
        kinds=frozenset({dict}),
        load=lambda values: hint(**load_fields(values, loads)),
        plain=False,
    )


def _is_required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_pydantic(hint: type) -> bool:
    module = sys.modules.get("pydantic")
    return module is not None and issubclass(hint, module.BaseModel)
