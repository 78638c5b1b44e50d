"""Types of expressions: what schemas tell, and that silence is never a problem."""

import pytest

from everstep.domain.check_types import BOOLEAN, Look, Types, check_types, types_in
from everstep.domain.expression import Expression, Ref, Span
from everstep.domain.grammar import parse_text

KNOWN: dict[str, Types] = {
    "t": frozenset({"string"}),
    "n": frozenset({"integer"}),
    "x": frozenset({"number"}),
    "b": frozenset({"boolean"}),
    "l": frozenset({"array"}),
    "o": frozenset({"object"}),
    "maybe": frozenset({"string", "null"}),
    "null_only": frozenset({"null"}),
}


def expression(text: str) -> Expression:
    parts = parse_text(f"${{{text}}}")
    assert isinstance(parts, tuple)
    (part,) = parts
    assert not isinstance(part, str)
    return part


def reported(text: str, wanted: frozenset[str] | None = None) -> tuple[Types, list[str]]:
    found: list[str] = []

    def types_of(ref: Ref) -> Types:
        return KNOWN.get(ref.root)

    def report(message: str, span: Span) -> None:
        found.append(message)

    look = Look(types_of=types_of, report=report)
    tree = expression(text)
    return (types_in(tree, look) if wanted is None else check_types(tree, wanted, "'when'", look)), found


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("t", {"string"}), ("u", None), ("1", {"integer"}), ("1.5", {"number"}), ("null", {"null"}), ("[u]", {"array"}),
        ("len(l)", {"integer"}), ("join(l, t)", {"string"}), ("json(u)", {"string"}), ("text(n)", {"string"}),
        ("lower(maybe)", {"string"}), ("upper(u)", {"string"}), ("trim(t)", {"string"}),
        ("default(maybe, n)", {"string", "integer"}), ("default(u, n)", None), ("default(null, n)", {"integer"}),
        ("t if b else n", {"string", "integer"}), ("t if u else u", None),
        ("n < x", {"boolean"}), ("t >= t", {"boolean"}), ("u < n", {"boolean"}), ("t == n", {"boolean"}),
        ("t in l", {"boolean"}), ("t not in o", {"boolean"}), ("t in u", {"boolean"}),
        ("not b", {"boolean"}), ("b and null or u", {"boolean"}),
    ],
)  # fmt: skip
def test_right_ones(text: str, types: set[str] | None) -> None:
    assert reported(text) == (types, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("len(n)", "'len' wants text, a list or a map, 'n' is an integer"),
        ("join(t, t)", "'join' wants a list, 't' is text"),
        ("join(l, n)", "'join' wants text, 'n' is an integer"),
        ("lower(l)", "'lower' wants text, 'l' is a list"),
        ("upper(len(t))", "'upper' wants text, this is an integer"),
        ("not t", "'not' wants true or false, 't' is text"),
        ("b and n", "'and' wants true or false, 'n' is an integer"),
        ("n or b", "'or' wants true or false, 'n' is an integer"),
        ("1 if 'false' else 2", "'if' wants true or false, this is text"),
        ("t < n", "text and an integer have no order"),
        ("n > l", "'>' wants a number or text, 'l' is a list"),
        ("t in n", "'in' wants text, a list or a map, 'n' is an integer"),
        ("[len(n)]", "'len' wants text, a list or a map, 'n' is an integer"),
        ("len(n) if b else 1", "'len' wants text, a list or a map, 'n' is an integer"),
        ("len(null_only)", "'len' wants text, a list or a map, 'null_only' is null"),
        ("t == len(n)", "'len' wants text, a list or a map, 'n' is an integer"),
    ],
)
def test_wrong_ones(text: str, message: str) -> None:
    assert reported(text)[1] == [message]


def test_the_whole_expression() -> None:
    assert reported("b", BOOLEAN)[1] == []
    assert reported("null_only", BOOLEAN)[1] == []
    assert reported("u", BOOLEAN)[1] == []
    assert reported("maybe", BOOLEAN)[1] == []
    assert reported("t", BOOLEAN)[1] == ["'when' wants true or false, 't' is text"]
