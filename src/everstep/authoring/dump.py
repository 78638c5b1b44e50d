"""Results of functions -> JSON values, by what they are at run time.

What JSON cannot say is handed on unchanged: the codec refuses it with the place inside the result.
"""

from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, TypeAlias, cast

from everstep.domain.values import ARTIFACT_BYTES_MAX, DEPTH_MAX, JsonValue

_SCALARS: Final = frozenset({type(None), bool, int, float, str})


def dump(value: object) -> JsonValue:
    """`value` as JSON: dataclasses and models become objects, tuples lists, dates and paths text."""
    return cast("JsonValue", value) if _count([value], 0) >= 0 else _converted(value, 1, {})


def _count(items: Collection[object], depth: int) -> int:
    """How many values these are, if all are JSON already, as in most results; negative if one is not.

    Values that hold themselves, or each other again and again, are not followed for ever: what is too deep or too much
    passes for JSON here, and the codec says what is wrong with it.
    """
    count = len(items)
    for item in items:
        kind = type(item)
        if kind is dict or kind is list:
            if depth > DEPTH_MAX:
                continue
            within = _count(item.values() if kind is dict else item, depth + 1)  # type: ignore[attr-defined,arg-type]
            if within < 0:
                return -1
            count += within
            if count > ARTIFACT_BYTES_MAX:
                break
        elif kind not in _SCALARS:
            return -1
    return count


_Done: TypeAlias = dict[int, tuple[object, JsonValue]]
"""What was converted before, by its identity; what is kept here keeps that."""


def _converted(value: object, depth: int, done: _Done) -> JsonValue:
    """Each once, however often it is held."""
    if type(value) in _SCALARS or depth > DEPTH_MAX + 1:
        return cast("JsonValue", value)
    if id(value) not in done:
        done[id(value)] = value, _convert(value, depth, done)
    return done[id(value)][1]


def _convert(value: object, depth: int, done: _Done) -> JsonValue:
    if isinstance(value, dict):
        return {key: _converted(item, depth + 1, done) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_converted(item, depth + 1, done) for item in value]
    for classes, convert in _CONVERSIONS:
        if isinstance(value, classes):
            return convert(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _converted(getattr(value, field.name), depth + 1, done) for field in fields(value)}
    if hasattr(type(value), "model_dump"):  # a pydantic model, without asking for pydantic
        return cast("JsonValue", cast("Any", value).model_dump(mode="json"))
    if (type(value).__module__, type(value).__name__) == ("uuid", "UUID"):
        return str(value)
    return cast("JsonValue", value)


def _moment(value: datetime) -> str:
    # A datetime without zone means local time, as everywhere in Python; written down it must say so.
    return (value if value.tzinfo else value.astimezone()).isoformat()


# Exact before general: an Enum may be a str, a datetime is a date. Any: what isinstance has just shown.
_CONVERSIONS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], JsonValue]], ...]] = (
    (Enum, lambda value: dump(value.value)),
    (datetime, _moment),
    (date, date.isoformat),
    (PurePath, str),
    (str, str),
    (int, int),
    (float, float),
)
