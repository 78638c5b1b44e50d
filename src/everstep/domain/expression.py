"""The language inside `${…}`, as a tree. `grammar` makes the trees, `bindings` gives them their meaning.

Every part keeps its place in the text, so that a problem can point at it.
"""

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias, assert_never

from everstep.domain.record import record
from everstep.domain.values import JsonValue

Sign: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
Span: TypeAlias = tuple[int, int]
"""First offset and the one after the last, in code points of the text."""

FUNCTIONS: Final = {"len": 1, "default": 2, "join": 2, "json": 1, "text": 1, "lower": 1, "upper": 1, "trim": 1}
"""Every function, and how many values it takes."""
WORDS: Final = frozenset({"if", "else", "or", "and", "not", "in", "true", "false", "null"})
"""Words with a meaning of their own; after a `.` they are ordinary field names."""


@record
class Constant:
    """A value written out."""

    value: JsonValue
    span: Span


@record
class Ref:
    """A name and the way into its value: `hits.results[0]`."""

    root: str
    path: tuple[str | int, ...]
    parts: tuple[Span, ...]
    """Where the root and each step of the path stand."""
    span: Span


@record
class Listing:
    """`[a, b]`."""

    items: "tuple[Expression, ...]"
    span: Span


@record
class Call:
    """`len(x)`."""

    function: str
    arguments: "tuple[Expression, ...]"
    span: Span


@record
class Compare:
    """`a < b`, `a in b`."""

    sign: Sign
    left: "Expression"
    right: "Expression"
    span: Span


@record
class Not:
    """`not a`."""

    value: "Expression"
    span: Span


@record
class Junction:
    """`a and b and c`, or the same with `or`."""

    word: Literal["and", "or"]
    parts: "tuple[Expression, ...]"
    span: Span


@record
class Choice:
    """`a if condition else b`."""

    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"
    span: Span


Expression: TypeAlias = Constant | Ref | Listing | Call | Compare | Not | Junction | Choice
Part: TypeAlias = str | Expression
"""A text is made of plain pieces and bindings."""


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one."""
    match expression:
        case Constant() | Ref():
            return ()
        case Listing():
            return expression.items
        case Call():
            return expression.arguments
        case Compare():
            return (expression.left, expression.right)
        case Not():
            return (expression.value,)
        case Junction():
            return expression.parts
        case Choice():
            return (expression.then, expression.condition, expression.otherwise)
        case _:
            assert_never(expression)


def refs(expression: Expression) -> Iterator[Ref]:
    """Every reference in an expression, in the order of the text."""
    if isinstance(expression, Ref):
        yield expression
    for inner in children(expression):
        yield from refs(inner)


@record
class BadExpression:
    """Why a text could not be parsed, and where in it."""

    code: Literal["bad_expression", "unknown_function"]
    message: str
    span: Span
    name: str | None = None
    """What was written where a function is expected, for "did you mean"."""
    suggestion: str | None = None
