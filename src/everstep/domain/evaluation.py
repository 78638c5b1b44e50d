"""What an expression comes to in a scope. Deterministic and lazy: only what decides the result is looked at.

Inside this file a value that is not there travels as an exception, because `default`, `if` and `and` decide at any
depth whether it matters. `bindings` turns what is left over into values; nothing raised here goes further.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias, assert_never

from everstep.domain.canonical import canonical_text
from everstep.domain.expression import Call, Choice, Compare, Constant, Expression, Junction, Listing, Not, Ref
from everstep.domain.ids import Digest
from everstep.domain.record import record
from everstep.domain.values import JsonValue

RESULT_BYTES_MAX: Final = 1024 * 1024
_SURELY_SMALL: Final = RESULT_BYTES_MAX // 4
"""A character has at most four bytes."""

WhyAbsent: TypeAlias = Literal["unknown", "failed", "skipped", "uncertain", "not_ended", "elsewhere"]
WhyUnresolved: TypeAlias = WhyAbsent | Literal["no_field", "bad_type", "too_large"]


@record
class Found:
    """The value of a root, and whether it came from outside."""

    value: JsonValue
    untrusted: bool = False


@record
class Absent:
    """A root without a value. `elsewhere`: it is the artifact `digest` and must be fetched first."""

    why: WhyAbsent
    producer: str | None = None
    digest: Digest | None = None


class Scope(Protocol):
    """What the names in a binding stand for."""

    def root(self, name: str, /) -> Found | Absent:
        """The value of `inputs`, `task`, `item`, … or of a step's output by its bind name."""
        ...

    def step(self, step_id: str, /) -> Mapping[str, JsonValue] | None:
        """What `steps.<id>` shows, or None if there is no such step."""
        ...


class Reading:
    """One look at a scope: remembers whether anything used came from outside."""

    __slots__ = ("scope", "untrusted")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.untrusted = False


class FailedError(Exception):
    """No value."""

    def __init__(
        self, why: WhyUnresolved, message: str, *, ref: Ref | None = None, producer: str | None = None
    ) -> None:
        super().__init__(message)
        self.why = why
        self.message = message
        self.ref = ref
        self.producer = producer


class ElsewhereError(Exception):
    """The value is an artifact that is not here."""

    def __init__(self, digest: Digest) -> None:
        super().__init__(digest)
        self.digest = digest


def evaluate(expression: Expression, reading: Reading) -> JsonValue:
    """The value of one expression."""
    match expression:
        case Ref():
            return _referred(expression, reading)
        case Constant():
            return expression.value
        case Call():
            return _call(expression, reading)
        case Compare():
            left, right = evaluate(expression.left, reading), evaluate(expression.right, reading)
            return _COMPARE[expression.sign](left, right)
        case Junction():
            decides = any if expression.word == "or" else all
            return decides(truth(part, reading) for part in expression.parts)
        case Not():
            return not truth(expression.value, reading)
        case Choice():
            chosen = expression.then if truth(expression.condition, reading) else expression.otherwise
            return evaluate(chosen, reading)
        case Listing():
            return [evaluate(item, reading) for item in expression.items]
        case _:
            assert_never(expression)


def truth(expression: Expression, reading: Reading) -> bool:
    """A condition: boolean, null counts as false, anything else is an error."""
    return as_condition(evaluate(expression, reading), expression)


def as_condition(value: JsonValue, expression: Expression | None = None) -> bool:
    """A value as a condition."""
    if value is None or isinstance(value, bool):
        return value or False
    ref = expression if isinstance(expression, Ref) else None
    raise FailedError("bad_type", f"a condition must be true or false, not {kind_of(value)}", ref=ref)


def text_of(value: JsonValue) -> str:
    """A value inside a text: strings as they are, everything else as canonical JSON."""
    return value if isinstance(value, str) else canonical_text(bounded(value))


def bounded(value: JsonValue) -> JsonValue:
    """The value, if a binding may give one so large."""
    if isinstance(value, str) and len(value) <= _SURELY_SMALL:
        return value
    if isinstance(value, str | list | dict) and _left_of(RESULT_BYTES_MAX, value) < 0:
        raise FailedError("too_large", f"the value has more than {RESULT_BYTES_MAX} bytes")
    return value


_KINDS: Final = {str: "text", int: "a number", float: "a number", bool: "true or false", list: "a list", dict: "a map"}


def kind_of(value: JsonValue) -> str:
    """What a value is, in a word or two."""
    return _KINDS.get(type(value), "null")


# --- references -----------------------------------------------------------------------------------------------------

_SENTENCES: Final[dict[WhyAbsent, str]] = {
    "unknown": "nothing here is called '{name}'",
    "failed": "'{name}' failed and has no output",
    "skipped": "'{name}' was skipped and has no output",
    "uncertain": "nobody knows yet what came of '{name}'",
    "not_ended": "'{name}' has not ended yet",
    "elsewhere": "the output of '{name}' cannot be fetched",
}
_FOREIGN_FACTS: Final = frozenset({"error", "approval"})
"""What `steps.<id>` says in other people's words; the rest is ours."""


def _referred(ref: Ref, reading: Reading) -> JsonValue:
    if ref.root == "steps":
        return _step_fact(ref, reading)
    found = reading.scope.root(ref.root)
    if isinstance(found, Absent):
        if found.why == "elsewhere" and found.digest is not None:
            raise ElsewhereError(found.digest)
        raise FailedError(found.why, _SENTENCES[found.why].format(name=ref.root), ref=ref, producer=found.producer)
    if found.untrusted:
        reading.untrusted = True
    return _follow(found.value, ref, 0) if ref.path else found.value


def is_foreign_fact(path: Sequence[str | int]) -> bool:
    """Whether this part of `steps` is in other people's words."""
    return len(path) == 1 or path[1] in _FOREIGN_FACTS


def _step_fact(ref: Ref, reading: Reading) -> JsonValue:
    facts = reading.scope.step(str(ref.path[0])) if ref.path else None
    if facts is None:
        raise FailedError("unknown", f"no step '{'.'.join(map(str, ref.path[:1]))}'", ref=ref)
    if is_foreign_fact(ref.path):
        reading.untrusted = True
    return _follow(dict(facts), ref, 1)


def _follow(value: JsonValue, ref: Ref, start: int) -> JsonValue:
    """Walk into a value. A way that is not there is `no_field`, whatever stands in its place."""
    for key in ref.path[start:] if start else ref.path:
        if isinstance(key, str):
            if not isinstance(value, dict) or key not in value:
                raise FailedError("no_field", f"'{reference_text(ref)}': there is no '{key}'", ref=ref)
            value = value[key]
        else:
            if not isinstance(value, list) or not -len(value) <= key < len(value):
                raise FailedError("no_field", f"'{reference_text(ref)}': there is no item {key}", ref=ref)
            value = value[key]
    return value


def reference_text(ref: Ref) -> str:
    """A reference as one would write it."""
    return ref.root + "".join(_key_text(key) for key in ref.path)


def _key_text(key: str | int) -> str:
    if isinstance(key, str) and key.isidentifier() and key.isascii():
        return f".{key}"
    return f"[{canonical_text(key)}]"


# --- functions and comparisons --------------------------------------------------------------------------------------


def _call(call: Call, reading: Reading) -> JsonValue:
    if call.function == "default":
        value = _or_missing(call.arguments[0], reading)
        return evaluate(call.arguments[1], reading) if value is None else value
    values = [evaluate(argument, reading) for argument in call.arguments]
    try:
        return _FUNCTIONS[call.function](*values)
    except FailedError as failed:
        failed.ref = next((argument for argument in call.arguments if isinstance(argument, Ref)), None)
        raise


def _or_missing(expression: Expression, reading: Reading) -> JsonValue:
    try:
        return evaluate(expression, reading)
    except FailedError as failed:
        if failed.why in ("bad_type", "too_large"):
            raise
        return None


def _wants(function: str, what: str, value: JsonValue) -> FailedError:
    return FailedError("bad_type", f"'{function}' wants {what}, not {kind_of(value)}")


def _len(value: JsonValue) -> JsonValue:
    if isinstance(value, str | list | dict):
        return len(value)
    raise _wants("len", "a list, a map or text", value)


def _join(items: JsonValue, separator: JsonValue) -> JsonValue:
    if not isinstance(items, list):
        raise _wants("join", "a list", items)
    if not isinstance(separator, str):
        raise _wants("join", "text between the items", separator)
    return joined([text_of(item) for item in items], separator)


def joined(texts: list[str], separator: str = "") -> str:
    """Texts put together, measured before the memory is spent."""
    if sum(map(len, texts)) + len(separator) * len(texts) > RESULT_BYTES_MAX:
        raise FailedError("too_large", f"the text has more than {RESULT_BYTES_MAX} bytes")
    return separator.join(texts)


def _on_text(function: str, change: Callable[[str], str]) -> Callable[[JsonValue], JsonValue]:
    def changed(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return change(value)
        raise _wants(function, "text", value)

    return changed


_FUNCTIONS: Final[dict[str, Callable[..., JsonValue]]] = {
    "len": _len,
    "join": _join,
    "json": lambda value: canonical_text(bounded(value)),
    "text": text_of,
    "lower": _on_text("lower", str.lower),
    "upper": _on_text("upper", str.upper),
    "trim": _on_text("trim", str.strip),
}


def same(left: JsonValue, right: JsonValue) -> bool:
    """Deep JSON equality: `1 == 1.0`, `true != 1`. Python agrees but for booleans, which it takes for numbers."""
    return left == right and _same_kinds(left, right)


def _same_kinds(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_same_kinds, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same_kinds(value, right[key]) for key, value in left.items())
    return True


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _less(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    if _is_number(left) and _is_number(right):
        return left < right  # type: ignore[operator]  # both are numbers
    raise FailedError("bad_type", f"{kind_of(left)} and {kind_of(right)} have no order")


def _contains(item: JsonValue, container: JsonValue) -> bool:
    if isinstance(container, list):
        return any(same(item, element) for element in container)
    if isinstance(container, str | dict) and isinstance(item, str):
        return item in container
    raise FailedError("bad_type", f"'in' cannot look for {kind_of(item)} in {kind_of(container)}")


_COMPARE: Final[dict[str, Callable[[JsonValue, JsonValue], bool]]] = {
    "==": same,
    "!=": lambda left, right: not same(left, right),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: _less(left, right) or left == right,
    ">=": lambda left, right: _less(right, left) or left == right,
    "in": _contains,
    "not in": lambda left, right: not _contains(left, right),
}


def _left_of(budget: int, value: JsonValue) -> int:
    """How much of `budget` bytes a value leaves over; stops as soon as it is used up."""
    pending: list[JsonValue] = [value]
    while pending and budget >= 0:
        item = pending.pop()
        if isinstance(item, str):
            budget -= len(item) if item.isascii() or len(item) > budget else len(item.encode("utf-8", "replace"))
        elif isinstance(item, list):
            budget -= 2 * len(item)
            pending.extend(item if budget >= 0 else ())
        elif isinstance(item, dict):
            budget -= 4 * len(item) + sum(map(len, item))
            pending.extend(item.values() if budget >= 0 else ())
    return budget
