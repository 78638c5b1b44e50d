"""Bindings: `${…}` in a JSON value, parsed once, filled in from recorded values.

A value is compiled once per plan and resolved as often as needed. Resolving is a function of the scope alone: no
clock, no randomness, no call; same journal, same value. What was inserted is never looked at again, so data cannot
become an expression. Values come from a `Scope`; this file never learns where it has them from.

Callers hand in strict JSON of the depth the codec allows.
"""

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from everstep.domain.evaluation import (
    Absent,
    ElsewhereError,
    FailedError,
    Found,
    Reading,
    Scope,
    WhyUnresolved,
    as_condition,
    bounded,
    evaluate,
    joined,
    reference_text,
    text_of,
)
from everstep.domain.expression import BadExpression, Call, Expression, Part, Ref, Span, children
from everstep.domain.grammar import parse_text
from everstep.domain.ids import Digest
from everstep.domain.pointer import child
from everstep.domain.record import record
from everstep.domain.values import JsonValue

__all__ = [
    "Absent",
    "Compiled",
    "Found",
    "NeedsPayload",
    "Reference",
    "Resolved",
    "Scope",
    "Unresolved",
    "WhyUnresolved",
    "compile_value",
    "references",
    "render",
    "resolve",
    "test",
]


@record
class Fixed:
    """A part without bindings: it is its own result."""

    value: JsonValue


@record
class Whole:
    """A text that is one binding and nothing else: the value keeps its type."""

    expression: Expression


@record
class Woven:
    """A text with bindings in it: they become text."""

    parts: tuple[Part, ...]


@record
class Items:
    """A list with bindings somewhere inside."""

    items: "tuple[Shape, ...]"


@record
class Fields:
    """A map with bindings somewhere inside. Keys are never templates."""

    fields: "dict[str, Shape]"


Shape: TypeAlias = Fixed | Whole | Woven | Items | Fields


@record
class BoundText:
    """A text with bindings, and where it stands in the compiled value."""

    pointer: str
    text: str
    expressions: tuple[Expression, ...]
    alone: bool
    """It is one binding and nothing else."""


@record
class SyntaxProblem:
    """A text that could not be parsed; it stays as it is."""

    pointer: str
    text: str
    why: BadExpression


@record
class Compiled:
    """A JSON value whose texts were parsed. `constant`: nothing in it is bound, resolving costs nothing."""

    shape: Shape
    texts: tuple[BoundText, ...]
    errors: tuple[SyntaxProblem, ...]

    @property
    def constant(self) -> bool:
        """Whether no scope can change the result."""
        return isinstance(self.shape, Fixed)


@record
class Reference:
    """One name used in a binding."""

    root: str
    path: tuple[str | int, ...]
    optional: bool
    """Inside `default(…)`, or a look at a step through `steps.`: the source may end any way."""
    pointer: str
    """The text, inside the compiled value."""
    parts: tuple[Span, ...]
    """Where the root and each step of the path stand in the text."""

    @property
    def offset(self) -> int:
        """Where it begins in the text."""
        return self.parts[0][0]


@record
class Resolved:
    """The value with every binding filled in. `untrusted`: something used in it came from outside."""

    value: JsonValue
    untrusted: bool = False


@record
class Unresolved:
    """A binding has no value."""

    argument: str
    """The top-level key it stands under; empty if the value is no map."""
    reference: str
    producer: str | None
    why: WhyUnresolved
    message: str


@record
class NeedsPayload:
    """These artifacts must be fetched first; then resolve again."""

    digests: tuple[Digest, ...]


# --- compile --------------------------------------------------------------------------------------------------------


def compile_value(value: JsonValue) -> Compiled:
    """Parse every text in `value`, once. Problems are kept as values for the checker."""
    texts: list[BoundText] = []
    errors: list[SyntaxProblem] = []
    shape = _compile(value, "", texts, errors)
    return Compiled(shape=shape, texts=tuple(texts), errors=tuple(errors))


def _compile(value: JsonValue, pointer: str, texts: list[BoundText], errors: list[SyntaxProblem]) -> Shape:
    if isinstance(value, str):
        return _compile_text(value, pointer, texts, errors) if "${" in value else Fixed(value=value)
    if isinstance(value, list):
        items = tuple(_compile(item, child(pointer, at), texts, errors) for at, item in enumerate(value))
        return _fixed_list(value, items) or Items(items=items)
    if isinstance(value, dict):
        fields = {key: _compile(item, child(pointer, key), texts, errors) for key, item in value.items()}
        return _fixed_map(value, fields) or Fields(fields=fields)
    return Fixed(value=value)


def _compile_text(text: str, pointer: str, texts: list[BoundText], errors: list[SyntaxProblem]) -> Shape:
    parts = parse_text(text)
    if isinstance(parts, BadExpression):
        errors.append(SyntaxProblem(pointer=pointer, text=text, why=parts))
        return Fixed(value=text)
    expressions = tuple(part for part in parts if not isinstance(part, str))
    if not expressions:
        return Fixed(value="".join(part for part in parts if isinstance(part, str)))
    alone = len(parts) == 1
    texts.append(BoundText(pointer=pointer, text=text, expressions=expressions, alone=alone))
    return Whole(expression=expressions[0]) if alone else Woven(parts=parts)


def _fixed_list(value: list[JsonValue], items: tuple[Shape, ...]) -> Fixed | None:
    fixed = [item.value for item in items if isinstance(item, Fixed)]
    if len(fixed) < len(items):
        return None
    return Fixed(value=value if fixed == value else fixed)


def _fixed_map(value: dict[str, JsonValue], fields: dict[str, Shape]) -> Fixed | None:
    fixed = {key: field.value for key, field in fields.items() if isinstance(field, Fixed)}
    if len(fixed) < len(fields):
        return None
    return Fixed(value=value if fixed == value else fixed)


# --- references -----------------------------------------------------------------------------------------------------


def references(compiled: Compiled) -> tuple[Reference, ...]:
    """Every name used, in the order of the text."""
    return tuple(
        Reference(
            root=ref.root,
            path=ref.path,
            optional=optional or ref.root == "steps",
            pointer=text.pointer,
            parts=ref.parts,
        )
        for text in compiled.texts
        for expression in text.expressions
        for ref, optional in _refs(expression, optional=False)
    )


def _refs(expression: Expression, *, optional: bool) -> Iterator[tuple[Ref, bool]]:
    if isinstance(expression, Ref):
        yield expression, optional
    optional = optional or (isinstance(expression, Call) and expression.function == "default")
    for inner in children(expression):
        yield from _refs(inner, optional=optional)


# --- resolve --------------------------------------------------------------------------------------------------------


def resolve(compiled: Compiled, scope: Scope) -> Resolved | Unresolved | NeedsPayload:
    """Fill in every binding.

    Artifacts come first, all at once: which binding is reported as unresolved must not depend on what lies where.
    """
    shape = compiled.shape
    if isinstance(shape, Fixed):
        return Resolved(value=shape.value)
    reading = Reading(scope)
    argument = ""
    try:
        if not isinstance(shape, Fields):
            return Resolved(value=_fill(shape, reading), untrusted=reading.untrusted)
        value: dict[str, JsonValue] = {}
        for argument, field in shape.fields.items():
            value[argument] = _fill(field, reading)
        return Resolved(value=value, untrusted=reading.untrusted)
    except ElsewhereError:
        return NeedsPayload(digests=_elsewhere(compiled, scope))
    except FailedError as failed:
        digests = _elsewhere(compiled, scope)
        return NeedsPayload(digests=digests) if digests else _unresolved(argument, failed)


def test(compiled: Compiled, scope: Scope) -> bool | Unresolved | NeedsPayload:
    """A condition: boolean, null counts as false, anything else is unresolved (`bad_type`)."""
    resolved = resolve(compiled, scope)
    if not isinstance(resolved, Resolved):
        return resolved
    expression = compiled.shape.expression if isinstance(compiled.shape, Whole) else None
    try:
        return as_condition(resolved.value, expression)
    except FailedError as failed:
        return _unresolved("", failed)


def render(compiled: Compiled, scope: Scope) -> str:
    """A text for people: what is not known yet prints as `<output from page>`."""
    reading = Reading(scope)
    shape = compiled.shape
    if isinstance(shape, Woven):
        return "".join(part if isinstance(part, str) else _shown(part, reading) for part in shape.parts)
    if isinstance(shape, Whole):
        return _shown(shape.expression, reading)
    return text_of(shape.value) if isinstance(shape, Fixed) else ""


def _fill(shape: Shape, reading: Reading) -> JsonValue:
    match shape:
        case Fixed():
            return shape.value
        case Whole():
            return bounded(evaluate(shape.expression, reading))
        case Woven():
            texts = [part if isinstance(part, str) else text_of(evaluate(part, reading)) for part in shape.parts]
            return bounded(joined(texts))
        case Items():
            return [_fill(item, reading) for item in shape.items]
        case Fields():
            return {key: _fill(field, reading) for key, field in shape.fields.items()}
        case _:
            assert_never(shape)


def _elsewhere(compiled: Compiled, scope: Scope) -> tuple[Digest, ...]:
    """Every artifact that the bindings ask for, as far as that can be told before they are here."""
    digests: dict[Digest, None] = {}
    for text in compiled.texts:
        for expression in text.expressions:
            try:
                evaluate(expression, Reading(scope))
            except ElsewhereError as missing:
                digests[missing.digest] = None
            except FailedError:
                continue
    return tuple(digests)


def _unresolved(argument: str, failed: FailedError) -> Unresolved:
    return Unresolved(
        argument=argument,
        reference=reference_text(failed.ref) if failed.ref else "",
        producer=failed.producer,
        why=failed.why,
        message=failed.message,
    )


_NOT_OUTPUTS = {"inputs": "input", "item": "item", "index": "index", "task": "task", "steps": "step", "error": "error"}


def _shown(expression: Expression, reading: Reading) -> str:
    try:
        return text_of(evaluate(expression, reading))
    except (FailedError, ElsewhereError):
        ref = next((ref for ref, _ in _refs(expression, optional=False)), None)
    if ref is None:
        return "<no value>"
    if ref.root in _NOT_OUTPUTS:
        return f"<{' '.join([_NOT_OUTPUTS[ref.root], *map(str, ref.path[:1])])}>"
    return f"<output from {ref.root}>"
