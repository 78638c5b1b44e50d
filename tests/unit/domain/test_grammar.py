"""The language inside `${…}`: what is read, what is refused and where, and that nothing else can happen."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everstep.domain.expression import (
    BadExpression,
    Call,
    Choice,
    Compare,
    Constant,
    Expression,
    Junction,
    Listing,
    Not,
    Ref,
    refs,
)
from everstep.domain.grammar import NESTING_MAX, PARTS_MAX, parse_text
from everstep.domain.tokens import EXPRESSION_CHARS_MAX


def only(text: str) -> Expression:
    """The one expression of a text."""
    parts = parse_text(text)
    assert isinstance(parts, tuple), parts
    (part,) = parts
    assert not isinstance(part, str)
    return part


def refused(text: str) -> BadExpression:
    bad = parse_text(text)
    assert isinstance(bad, BadExpression), bad
    return bad


def test_texts() -> None:
    assert parse_text("plain") == ("plain",)
    assert parse_text("") == ()
    assert parse_text("$${a}") == ("${a}",)
    assert parse_text("$$${a}") == ("$${a}",)
    assert parse_text("cost $5, 100 {}") == ("cost $5, 100 {}",)


def test_a_text_of_several_parts() -> None:
    parts = parse_text('a ${"$"}${price} $${c}')
    assert isinstance(parts, tuple)
    first, dollar, price, last = parts
    assert (first, last) == ("a ", " ${c}")
    assert dollar == Constant(value="$", span=(4, 7))
    assert price == Ref(root="price", path=(), parts=((10, 15),), span=(10, 15))


def test_references_keep_their_places() -> None:
    ref = only('${hits.results[-1]["a-b"].from}')
    assert ref == Ref(
        root="hits",
        path=("results", -1, "a-b", "from"),
        parts=((2, 6), (7, 14), (14, 18), (18, 25), (26, 30)),
        span=(2, 30),
    )


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(\.[A-Za-z_][A-Za-z0-9_]{0,8}){0,4}", fullmatch=True))
def test_the_short_way_agrees_with_the_parser(inner: str) -> None:
    """A plain reference skips the parser; a space inside makes it take the long way."""
    short, long = parse_text(f"${{{inner}}}"), parse_text(f"${{{inner} }}")
    assert short == long or isinstance(short, BadExpression)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("${1 if a else 2}", Choice),
        ("${a or b or c}", Junction),
        ("${a and b}", Junction),
        ("${not not a}", Not),
        ("${a == b}", Compare),
        ("${a not in [1, 2]}", Compare),
        ("${[ ]}", Listing),
        ("${len(a)}", Call),
        ("${(a)}", Ref),
        ("${null}", Constant),
    ],
)
def test_kinds(text: str, kind: type) -> None:
    assert isinstance(only(text), kind)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a'", "a"),
        (r'"\u00e9\n\t\"\\\/"', 'é\n\t"\\/'),
        (r"'it\'s'", "it's"),
        (r'"\ud83d\ude00"', "😀"),
        ("'}'", "}"),
        ("-3", -3),
        ("1.5e2", 150.0),
        ("9007199254740992", 2**53),
        ("true", True),
    ],
)
def test_literals(literal: str, value: object) -> None:
    constant = only(f"${{{literal}}}")
    assert isinstance(constant, Constant)
    assert constant.value == value
    assert type(constant.value) is type(value)


def test_precedence() -> None:
    tree = only("${a or b and not c == d}")
    assert isinstance(tree, Junction)
    assert tree.word == "or"
    assert isinstance(tree.parts[1], Junction)
    assert isinstance(tree.parts[1].parts[1], Not)
    assert isinstance(tree.parts[1].parts[1].value, Compare)


def test_refs_in_order() -> None:
    tree = only("${a if b else len([c.d, default(e, f)])}")
    assert [ref.root for ref in refs(tree)] == ["a", "b", "c", "e", "f"]


REFUSALS = [
    ("${a.}", "expected a name after '.'", (4, 5)),
    ("${}", "expected a value, not the end", (2, 3)),
    ("x ${a", "'}' is missing", (2, 4)),
    ("${a b}", "expected '}', not 'b'", (4, 5)),
    ("${a[x]}", "expected a whole number or a quoted key inside '[…]', not 'x'", (4, 5)),
    ("${a[1.5]}", "expected a whole number or a quoted key inside '[…]', not '1.5'", (4, 7)),
    ("${a[0}", "expected ']', not the end", (5, 6)),
    ("${if}", "expected a value, not 'if'", (2, 4)),
    ("${a if b}", "expected 'else', not the end", (8, 9)),
    ("${a not b}", "expected 'in' after 'not', not 'b'", (8, 9)),
    ("${-a}", "expected a number after '-', not 'a'", (3, 4)),
    ("${(a}", "expected ')', not the end", (4, 5)),
    ("${len()}", "expected a value, not ')'", (6, 7)),
    ("${len(a, b)}", "'len' takes 1 value, not 2", (2, 11)),
    ("${join(a)}", "'join' takes 2 values, not 1", (2, 9)),
    ("${'a}", "this text has no end", (2, 3)),
    ("${a & b}", "'&' does not belong here", (4, 5)),
    ("${010}", "010 can be read in two ways, write it without the leading 0", (2, 5)),
    ("${9007199254740993}", "whole numbers end at 2^53", (2, 18)),
    ("${1e999}", "this number is too large", (2, 7)),
    (r"${'\q'}", r"'\q' is not an escape", (3, 5)),
    (r"${'\ud83d'}", "half a surrogate pair is not a character", (2, 10)),
    ("${a < b < c}", "expected '}', not '<'", (8, 9)),
]


@pytest.mark.parametrize(("text", "message", "span"), REFUSALS)
def test_refusals_say_what_and_where(text: str, message: str, span: tuple[int, int]) -> None:
    bad = refused(text)
    assert (bad.code, bad.message, bad.span) == ("bad_expression", message, span)


def test_other_languages_are_recognised() -> None:
    assert refused("${{ inputs.x }}").suggestion == "${inputs.x}"
    assert refused("${length(a)}") == BadExpression(
        code="unknown_function", message="no function 'length'", span=(2, 8), name="length"
    )


def test_limits() -> None:
    longest = "a" * EXPRESSION_CHARS_MAX
    assert isinstance(only(f"${{{longest}}}"), Ref)
    assert "1000 characters" in refused(f"${{{longest}a}}").message
    assert "1000 characters" in refused(f"${{'{longest}'}}").message
    deepest = "(" * (NESTING_MAX - 1) + "a" + ")" * (NESTING_MAX - 1)
    assert isinstance(only(f"${{{deepest}}}"), Ref)
    assert "32 deep" in refused(f"${{({deepest})}}").message
    assert "32 deep" in refused("${" + "not " * 40 + "a}").message
    most = ",".join("1" * (PARTS_MAX - 1))
    assert isinstance(only(f"${{[{most}]}}"), Listing)
    assert "200 parts" in refused(f"${{[{most},1]}}").message


SHREDS = st.lists(
    st.sampled_from(["${", "}", "$", "$$", "a", ".", "[", "]", "(", ")", "'", '"', "\\", "0", "-1", "==", " in ",
                     " not ", " if ", " else ", "len", "default", ",", " and ", "true", "\n", "\ud800", "{", "1e9"])
).map("".join)  # fmt: skip


@given(st.text() | SHREDS)
@example("${" * 500)
@example("${'" * 500)
@example("${" + "[" * 100_000)
@example("${" + "not " * 100_000)
def test_any_text_gives_an_answer(text: str) -> None:
    answer = parse_text(text)
    if isinstance(answer, BadExpression):
        assert 0 <= answer.span[0] <= answer.span[1] <= len(text)
    elif "${" not in text:
        assert "".join(part for part in answer if isinstance(part, str)) == text
