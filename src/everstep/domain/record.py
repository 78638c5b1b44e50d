"""`@record`: an immutable fact, cheap enough for the laps, and cheap to define: hundreds are at every start.

Frozen dataclasses cost three times as much to make. So a record is frozen for the type checker always, and
really frozen under `python -X dev`, which the unit suite uses. Names cost as much again: the few records that are made
on every step are `@hot_record`s, and the laps give their fields by position.

A dataclass compiles text for each of its methods. Ours let it write `__init__` alone; comparing, hashing and showing
are the same few lines for all.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_BARE = {"slots": True, "eq": False, "repr": False, "frozen": sys.flags.dev_mode}
_make: Callable[[type], type] = dataclass(kw_only=True, **_BARE)
_make_hot: Callable[[type], type] = dataclass(**_BARE)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a record: keyword-only, slotted, immutable."""
    return _finish(_make(cls))


@dataclass_transform(frozen_default=True)
def hot_record(cls: type[T]) -> type[T]:
    """The same, but its fields may be given by position."""
    return _finish(_make_hot(cls))


def _finish(cls: type[T]) -> type[T]:
    every = fields(cls)  # type: ignore[arg-type]  # it has just been made one
    names, told = [one.name for one in every], [one.name for one in every if one.repr]
    values: Callable[[Any], Any] = attrgetter(*names) if names else _nothing

    def same(self: T, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def digest(self: T) -> int:
        return hash(values(self))

    def shown(self: T) -> str:
        return f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in told)})"

    for name, method in (("__eq__", same), ("__hash__", digest), ("__repr__", shown)):
        if name not in cls.__dict__ or cls.__dict__[name] is None:
            setattr(cls, name, method)
    return cls


def _nothing(_: object) -> tuple[()]:
    return ()
