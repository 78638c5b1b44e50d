"""Types of expressions, as far as schemas tell: `join` of a number is found before anything runs.

Unknown types are never a problem: what is not described is looked at when it is there.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, assert_never

from everstep.domain.described import type_of
from everstep.domain.evaluation import reference_text
from everstep.domain.expression import (
    Call,
    Choice,
    Compare,
    Constant,
    Expression,
    Junction,
    Listing,
    Not,
    Ref,
    Span,
)
from everstep.domain.record import record

Types: TypeAlias = frozenset[str] | None
"""JSON types a value can have; None: not known."""

BOOLEAN: Final = frozenset({"boolean", "null"})
LIST: Final = frozenset({"array"})
_TEXT: Final = frozenset({"string"})
_NUMBERS: Final = frozenset({"integer", "number"})
_ALL: Final = _NUMBERS | {"string", "boolean", "array", "object", "null"}

_FUNCTIONS: Final[dict[str, tuple[tuple[frozenset[str], ...], Types]]] = {
    "len": ((LIST | {"object", "string"},), frozenset({"integer"})),
    "join": ((LIST, _TEXT), _TEXT),
    "json": ((_ALL,), _TEXT),
    "text": ((_ALL,), _TEXT),
    "lower": ((_TEXT,), _TEXT),
    "upper": ((_TEXT,), _TEXT),
    "trim": ((_TEXT,), _TEXT),
}
"""Function → what it wants, what it gives. `default` gives what it is given."""
_WORDS: Final = {
    "integer": "an integer", "number": "a number", "string": "text", "boolean": "true or false",
    "array": "a list", "object": "a map", "null": "null",
}  # fmt: skip


@record
class Look:
    """How to learn the types of a reference, and where to report."""

    types_of: Callable[[Ref], Types]
    report: Callable[[str, Span], None]


def check_types(expression: Expression, wanted: frozenset[str], who: str, look: Look) -> Types:
    """Report everything inside that cannot be right, and the whole if it cannot be one of `wanted`."""
    types = types_in(expression, look)
    if types is not None and not _fits(types, wanted):
        what = f"'{reference_text(expression)}'" if isinstance(expression, Ref) else "this"
        look.report(f"{who} wants {_listed(wanted)}, {what} is {_listed(types)}", expression.span)
    return types


def _fits(types: frozenset[str], wanted: frozenset[str]) -> bool:
    return bool(types & wanted) or bool(types & _NUMBERS and wanted & _NUMBERS)


def _listed(types: frozenset[str]) -> str:
    if types >= _NUMBERS:
        types -= {"integer"}
    *most, last = [word for name, word in _WORDS.items() if name in types and (name != "null" or types == {"null"})]
    return f"{', '.join(most)} or {last}" if most else last


def types_in(expression: Expression, look: Look) -> Types:
    """What an expression can give; reports what is wrong inside."""
    match expression:
        case Ref():
            return look.types_of(expression)
        case Constant():
            return frozenset({type_of(expression.value)})
        case Call():
            return _call(expression, look)
        case Compare():
            _compare(expression, look)
            return frozenset({"boolean"})
        case Not():
            check_types(expression.value, BOOLEAN, "'not'", look)
            return frozenset({"boolean"})
        case Junction():
            for part in expression.parts:
                check_types(part, BOOLEAN, f"'{expression.word}'", look)
            return frozenset({"boolean"})
        case Choice():
            check_types(expression.condition, BOOLEAN, "'if'", look)
            then, otherwise = types_in(expression.then, look), types_in(expression.otherwise, look)
            return None if then is None or otherwise is None else then | otherwise
        case Listing():
            for item in expression.items:
                types_in(item, look)
            return LIST
        case _:
            assert_never(expression)


def _call(call: Call, look: Look) -> Types:
    if call.function == "default":
        first, second = (types_in(argument, look) for argument in call.arguments)
        return None if first is None or second is None else (first - {"null"}) | second
    wanted, gives = _FUNCTIONS[call.function]
    for argument, types in zip(call.arguments, wanted, strict=True):
        check_types(argument, types, f"'{call.function}'", look)
    return gives


def _compare(compare: Compare, look: Look) -> None:
    left = types_in(compare.left, look)
    if compare.sign in ("==", "!="):
        types_in(compare.right, look)
    elif compare.sign in ("in", "not in"):
        check_types(compare.right, LIST | {"string", "object"}, "'in'", look)
    else:
        right = check_types(compare.right, _NUMBERS | _TEXT, f"'{compare.sign}'", look)
        if left is not None and right is not None and right & (_NUMBERS | _TEXT) and not _fits(left, right):
            look.report(f"{_listed(left)} and {_listed(right)} have no order", compare.span)
