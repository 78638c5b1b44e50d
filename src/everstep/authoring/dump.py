"""Results of functions -> JSON values, by what they are at run time.

What JSON cannot say is handed on unchanged: the codec refuses it with the place inside the result.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, cast

from everstep.domain.values import JsonValue

_SCALARS: Final = frozenset({type(None), bool, int, float, str})


def dump(value: object) -> JsonValue:
    """`value` as JSON: dataclasses and models become objects, tuples lists, dates and paths text."""
    if _is_plain([value]):
        return cast("JsonValue", value)
    for classes, convert in _CONVERSIONS:
        if isinstance(value, classes):
            return convert(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: dump(getattr(value, field.name)) for field in fields(value)}
    if hasattr(type(value), "model_dump"):  # a pydantic model, without asking for pydantic
        return cast("JsonValue", cast("Any", value).model_dump(mode="json"))
    if (type(value).__module__, type(value).__name__) == ("uuid", "UUID"):
        return str(value)
    return cast("JsonValue", value)


def _is_plain(items: Iterable[object]) -> bool:
    """Whether it is JSON already, as most results are. A value that holds itself ends in RecursionError."""
    for item in items:
        kind = type(item)
        if kind is dict:
            if not _is_plain(item.values()):  # type: ignore[attr-defined]
                return False
        elif kind is list:
            if not _is_plain(item):  # type: ignore[arg-type]
                return False
        elif kind not in _SCALARS:
            return False
    return True


def _moment(value: datetime) -> str:
    # A datetime without zone means local time, as everywhere in Python; written down it must say so.
    return (value if value.tzinfo else value.astimezone()).isoformat()


# Exact before general: an Enum may be a str, a datetime is a date. Any: what isinstance has just shown.
_CONVERSIONS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], JsonValue]], ...]] = (
    (dict, lambda value: {key: dump(item) for key, item in value.items()}),
    ((list, tuple), lambda value: [dump(item) for item in value]),
    (Enum, lambda value: dump(value.value)),
    (datetime, _moment),
    (date, date.isoformat),
    (PurePath, str),
    (str, str),
    (int, int),
    (float, float),
)
