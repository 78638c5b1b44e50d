"""`Ref`: a value that a plan will have once it runs. Python can name it, and compare it, but not look at it."""

import re
from collections.abc import Iterator
from enum import IntEnum
from json.encoder import encode_basestring
from typing import Final

from everstep.authoring.markers import Markers
from everstep.domain.canonical import canonical_text
from everstep.domain.expression import BadExpression
from everstep.domain.expression import Ref as Path
from everstep.domain.grammar import parse_text
from everstep.domain.record import record

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Binds(IntEnum):
    """How tightly an expression holds together; a looser one is put in parentheses."""

    OR = 0
    AND = 1
    NOT = 2
    COMPARE = 3
    VALUE = 4
    PATH = 5


@record
class Named:
    """What a reference stands for."""

    text: str
    markers: Markers
    """Of the plan it belongs to."""
    binds: Binds
    step: str | None = None
    """The id of the step that this is the whole output of."""


class Ref:
    """`ref.field`, `ref["key"]`, `ref[0]`; `== != < <= > >= & | ~` make conditions; in an f-string it binds."""

    # A name with two underscores: every other one is a field of the value.
    __slots__ = ("__named",)

    def __init__(self, text: str, markers: Markers, binds: Binds = Binds.PATH, *, step: str | None = None) -> None:
        self.__named = Named(text=text, markers=markers, binds=binds, step=step)

    def __getattr__(self, name: str) -> "Ref":
        if name.startswith("_"):
            raise AttributeError(f"a reference has no {name}; a field of that name is ref[{name!r}]")
        return self[name]

    def __getitem__(self, key: str | int) -> "Ref":
        named = self.__named
        if named.binds is not Binds.PATH:
            raise TypeError(f"'{named.text}' is a condition, it has no parts")
        return Ref(named.text + _part(key), named.markers)

    def __eq__(self, other: object) -> "Ref":  # type: ignore[override]  # a condition, as with columns of a query
        return _compared(self, "==", other)

    def __ne__(self, other: object) -> "Ref":  # type: ignore[override]
        return _compared(self, "!=", other)

    def __lt__(self, other: object) -> "Ref":
        return _compared(self, "<", other)

    def __le__(self, other: object) -> "Ref":
        return _compared(self, "<=", other)

    def __gt__(self, other: object) -> "Ref":
        return _compared(self, ">", other)

    def __ge__(self, other: object) -> "Ref":
        return _compared(self, ">=", other)

    def __and__(self, other: object) -> "Ref":
        return _joined(self, "and", other, Binds.AND)

    def __or__(self, other: object) -> "Ref":
        return _joined(self, "or", other, Binds.OR)

    def __invert__(self) -> "Ref":
        return Ref(f"not {spelled(self, Binds.NOT)}", self.__named.markers, Binds.NOT)

    __hash__ = None  # type: ignore[assignment]  # equality is a condition here

    def __bool__(self) -> bool:
        raise _no_value(self)

    def __iter__(self) -> Iterator["Ref"]:
        raise _no_value(self)

    def __len__(self) -> int:
        raise _no_value(self)

    def __contains__(self, item: object) -> bool:
        raise _no_value(self)

    def __str__(self) -> str:
        return self.__named.markers.print(self.__named.text)

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"'{self.__named.text}' has no value to format while the plan is built; remove ':{spec}'")
        return str(self)

    def __repr__(self) -> str:
        return f"Ref({self.__named.text})"


def named(ref: Ref) -> Named:
    """What it stands for; not as an attribute, which would be a field."""
    found: Named = object.__getattribute__(ref, "_Ref__named")
    return found


def expression(text: str, markers: Markers) -> Ref:
    """An expression written out; ValueError if it is none."""
    match parse_text(f"${{{text}}}"):
        case (Path(),):
            return Ref(text.strip(), markers)
        case (found,) if not isinstance(found, str):
            return Ref(text.strip(), markers, Binds.OR)
        case BadExpression(message=message):
            raise ValueError(f"'{text}': {message}")
        case _:
            raise ValueError(f"'{text}' is not one expression")


def _part(key: object) -> str:
    if isinstance(key, str):
        return f".{key}" if _NAME.fullmatch(key) else f"[{encode_basestring(key)}]"
    if isinstance(key, int) and not isinstance(key, bool):
        return f"[{key}]"
    raise TypeError(f"a part is named by text or by number, not by {key!r}")


def _compared(ref: Ref, sign: str, other: object) -> Ref:
    text = f"{spelled(ref, Binds.VALUE)} {sign} {spelled(other, Binds.VALUE)}"
    return Ref(text, named(ref).markers, Binds.COMPARE)


def _joined(ref: Ref, word: str, other: object, binds: Binds) -> Ref:
    text = f"{spelled(ref, binds)} {word} {spelled(other, Binds(binds + 1))}"
    return Ref(text, named(ref).markers, binds)


def spelled(value: object, binds: Binds = Binds.OR) -> str:
    """A reference or a plain value as part of an expression that holds together at least as tightly."""
    if isinstance(value, Ref):
        it = named(value)
        return it.text if it.binds >= binds else f"({it.text})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(spelled(item) for item in value)}]"
    if value is None or isinstance(value, bool | int | float | str):
        return canonical_text(value)
    raise TypeError(f"{value!r} cannot stand in an expression; compare with text, a number, true, null or a list")


def _no_value(ref: Ref) -> TypeError:
    return TypeError(f"'{named(ref).text}' has no value while the plan is built; use when= or for_each=")
