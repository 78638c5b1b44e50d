"""`@record`: an immutable fact, cheap enough for the laps, and cheap to define: hundreds are at every start.

Frozen dataclasses cost three times as much to make. So a record is frozen for the type checker always, and
really frozen under `python -X dev`, which the unit suite uses. Names cost as much again: the few records that are made
on every step are `@hot_record`s, and the laps give their fields by position.

A dataclass compiles text for each of its methods. Of ours `__init__` alone is compiled, and not before the first one is
made: most kinds are never made by a command. Comparing, hashing and showing are the same few lines for all.
"""

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_FROZEN = sys.flags.dev_mode
_BARE = {"slots": True, "eq": False, "repr": False, "init": False, "frozen": _FROZEN}
_WRITE = "    _write(self, {0!r}, {1})\n" if _FROZEN else "    self.{0} = {1}\n"
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

    def init(self: T, *given: object, **named: object) -> None:
        made = cls.__init__ = _init(every)  # type: ignore[method-assign]  # from now on
        made(self, *given, **named)

    for name, method in (("__init__", init), ("__eq__", same), ("__hash__", digest), ("__repr__", shown)):
        if name not in cls.__dict__ or cls.__dict__[name] is None:
            setattr(cls, name, method)
    return cls


def _init(every: "tuple[Field[Any], ...]") -> Callable[..., None]:
    """What takes the fields, as a dataclass writes it."""
    known: dict[str, Any] = {"_write": object.__setattr__}
    written, head = "", "self"
    for kind in (False, True):
        head += ", *" if kind and any(one.kw_only for one in every) else ""
        for one in (one for one in every if one.kw_only is kind):
            head += f", {one.name}"
            value = one.name
            if one.default is not MISSING:
                known[f"_{one.name}"] = one.default
                head += f"=_{one.name}"
            elif one.default_factory is not MISSING:
                known[f"_{one.name}"] = one.default_factory
                head += "=_write"
                value = f"_{one.name}() if {one.name} is _write else {one.name}"
            written += _WRITE.format(one.name, value)
    exec(f"def __init__({head}):\n{written or '    pass'}", known)  # noqa: S102 -- names of fields, and nothing else
    made: Callable[..., None] = known["__init__"]
    return made


def _nothing(_: object) -> tuple[()]:
    return ()
