"""`@record`: an immutable fact, cheap enough for the laps.

Frozen dataclasses cost three times as much to make. So a record is frozen for the type checker always, and
really frozen under `python -X dev`, which the unit suite uses. Names cost as much again: the few records that are made
on every step are `@hot_record`s, and the laps give their fields by position.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

_make: Callable[[type], type] = dataclass(slots=True, kw_only=True, unsafe_hash=True, frozen=sys.flags.dev_mode)
_make_hot: Callable[[type], type] = dataclass(slots=True, unsafe_hash=True, frozen=sys.flags.dev_mode)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a record: keyword-only, slotted, immutable."""
    return _make(cls)


@dataclass_transform(frozen_default=True)
def hot_record(cls: type[T]) -> type[T]:
    """The same, but its fields may be given by position."""
    return _make_hot(cls)
