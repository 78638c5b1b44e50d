"""Plan files: both spellings, every refusal of the text with its line and column, and texts made to hurt."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.normal import digest
from everstep.wire.plan import PLAN_BYTES_MAX, read_plan
from tests.unit.known_tools import check_text, plan, spec, step


def args_of(text: str) -> JsonValue:
    """The arguments of the only step, as a YAML plan reads them."""
    read = read_plan(f"name: p\nsteps:\n- id: a\n  tool: t\n  with:\n{text}", syntax="yaml")
    assert read.plan is not None, read.problems
    return read.plan.steps[0].arguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None), ("Null", None), ("NULL", None), ("~", None), ("", None),
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("Off", "Off"), ("y", "y"), ("tRue", "tRue"), ("nuLL", "nuLL"),
        ("12:30", "12:30"), ("2026-01-01", "2026-01-01"), ("1_000", "1_000"), ("0b1", "0b1"), ("1,000", "1,000"),
        ("0", 0), ("-3", -3), ("+7", 7), ("0o17", 15), ("0x1F", 31), ("9007199254740992", 2**53),
        ("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-1.5E-3", -0.0015),
        ("-", None), ("+", "+"), (".", "."), ("1.2.3", "1.2.3"), ("1e", "1e"), ("0x", "0x"), ("infinity", "infinity"),
        ('"010"', "010"), ("'true'", "true"), ("${a}", "${a}"), ("a b # c", "a b"),
        ('"\\u00e9\\n"', "é\n"), ("'it''s'", "it's"), ("|-\n      x\n      y", "x\ny"), (">-\n      x\n      y", "x y"),
    ],
)  # fmt: skip
def test_yaml_scalars(text: str, value: JsonValue) -> None:
    if text == "-":
        assert args_of("    k:\n    -") == {"k": [None]}
        return
    result = args_of(f"    k: {text}\n")
    assert result == {"k": value}
    assert isinstance(result, dict)
    assert type(result["k"]) is type(value)


def test_keys_are_always_text() -> None:
    assert args_of("    true: 1\n    12: 2\n    ~: 3\n    2026-01-01: 4\n    '<<': 5\n") == {
        "true": 1,
        "12": 2,
        "~": 3,
        "2026-01-01": 4,
        "<<": 5,
    }


REFUSED: list[tuple[str, str, tuple[int, int], str]] = [
    ("a: 010", "bad_number", (1, 4), '010 can be read in two ways, write 10 or "010"'),
    ("a: [1, -00]", "bad_number", (1, 8), '-00 can be read in two ways, write 0 or "-00"'),
    ("a: .inf", "bad_number", (1, 4), '.inf is not a number of JSON, write ".inf" for the text'),
    ("a: -.INF", "bad_number", (1, 4), '-.INF is not a number of JSON, write "-.INF" for the text'),
    ("a: .NaN", "bad_number", (1, 4), '.NaN is not a number of JSON, write ".NaN" for the text'),
    ("a: 9007199254740993", "bad_number", (1, 4), "whole numbers end at 2^53, write larger ones as text"),
    ("a: 0xFFFFFFFFFFFFFFFF", "bad_number", (1, 4), "whole numbers end at 2^53, write larger ones as text"),
    ("a: 1e999", "bad_number", (1, 4), "1e999 is too large for a number"),
    ("a: &x 1", "yaml_alias", (1, 4), "'&x' is an anchor, write the value out"),
    ("a: &x\n  b: 1", "yaml_alias", (1, 4), "'&x' is an anchor, write the value out"),
    ("a: *x", "yaml_alias", (1, 4), "'*x' is an alias, write the value out"),
    ("a: 1\n<<: 2", "yaml_alias", (2, 1), "'<<' merges maps, write the keys out"),
    ("a: !!python/name x", "yaml_tag", (1, 4), "'!!python/name' is a tag, leave it out"),
    ("a: !own {b: 1}", "yaml_tag", (1, 4), "'!own' is a tag, leave it out"),
    ("a: ! x", "yaml_tag", (1, 4), "'!' is a tag, leave it out"),
    ("%YAML 1.2\n---\na: 1", "yaml_documents", (1, 1), "a plan takes no directives, leave out the line with '%'"),
    ("%TAG ! x\n---\na: 1", "yaml_documents", (1, 1), "a plan takes no directives, leave out the line with '%'"),
    ("%OWN x\n---\na: 1", "bad_syntax", (1, 5), "a plan takes no directives, leave out the line with '%'"),
    ("a: 1\n---\nb: 1", "yaml_documents", (2, 1), "one document per file"),
    ("a: 1\n...\n---\nb: 1", "yaml_documents", (3, 1), "one document per file"),
    ("a: 1\nb: 2\na: 3", "duplicate_key", (3, 1), "'a' is already given on line 1"),
    ("{a: 1, 'a': 2}", "duplicate_key", (1, 8), "'a' is already given on line 1"),
    ("? [a]\n: b", "bad_syntax", (1, 3), "a key must be text"),
    ("a: {q: {{x}}}", "bad_syntax", (1, 9), "a key must be text"),
    ("a: {q: ${x}}", "bad_syntax", (1, 9), "',' or '}' is missing"),
    ("a: [${x}]", "bad_syntax", (1, 6), "',' or ']' is missing"),
    ("a: b: c", "bad_syntax", (1, 5), "':' does not belong here: quote the text, or check the indentation"),
    ("a:\n\t- b", "bad_syntax", (2, 1), "a tab cannot indent, use spaces"),
    ('a: "x', "bad_syntax", (1, 4), "a quote or bracket is not closed"),
    ("a: '\\", "bad_syntax", (1, 4), "a quote or bracket is not closed"),
    ('a: "\\q"', "bad_syntax", (1, 5), "this escape is not known, write \\\\ for a backslash"),
    ("a:\n  - b\n c: d", "bad_syntax", (3, 2), "the indentation is off, or a ',' or quote is missing"),
    ("a: b\nc\nd: e", "bad_syntax", (3, 1), "a key must be followed by ':'"),
    ("a: \x07", "bad_encoding", (1, 4), "U+0007 may not stand in a plan, write it as an escape"),
    ("a: \x00", "bad_encoding", (1, 4), "U+0000 may not stand in a plan, write it as an escape"),
    ("a: \x85b", "bad_encoding", (1, 4), "U+0085 may not stand in a plan, write it as an escape"),
    ("a: x\u2028b: c", "bad_encoding", (1, 5), "U+2028 may not stand in a plan, write it as an escape"),
    ("a: \ud800", "bad_encoding", (1, 4), "U+D800 may not stand in a plan, write it as an escape"),
    ("- " * 65 + "a", "too_large", (1, 129), "nested more than 64 deep"),
    ("[" * 100_000, "too_large", (1, 65), "nested more than 64 deep"),
    ("{a: " * 60_000, "too_large", (1, 257), "nested more than 64 deep"),
    ("? " * 100_000, "bad_syntax", (1, 3), "a key must be text"),
]


@pytest.mark.parametrize(("text", "code", "place", "message"), REFUSED)
def test_yaml_refusals(text: str, code: str, place: tuple[int, int], message: str) -> None:
    read = read_plan(text, syntax="yaml")
    assert read.plan is None
    first = read.problems[0]
    assert (first.code, (first.line, first.column), first.message) == (f"plan.{code}", place, message)


@pytest.mark.parametrize("text", ["a: {q: ${x}}", "a: [${x}]", "a: {q: {{x}}}", "a: {b: 1, q: ${{x}}}"])
def test_unquoted_bindings_get_a_hint(text: str) -> None:
    assert read_plan(text, syntax="yaml").problems[0].hint == 'quote it: "${…}"'


def test_several_refusals_at_once() -> None:
    found = read_plan("a: &x 1\nb: *x\nc: 010\na: !t 2\n", syntax="yaml").problems
    assert [(problem.code, problem.line) for problem in found] == [
        ("plan.yaml_alias", 1),
        ("plan.yaml_alias", 2),
        ("plan.bad_number", 3),
        ("plan.duplicate_key", 4),
        ("plan.yaml_tag", 4),
    ]


JSON_REFUSED: list[tuple[str, str, tuple[int, int], str]] = [
    ("", "bad_syntax", (1, 1), "the text ends where a value is expected"),
    ('{"a":1', "bad_syntax", (1, 6), "the text ends where ',' or '}' is expected"),
    ('{"a":}', "bad_syntax", (1, 6), "expected a value, not '}'"),
    ('{"a":1,}', "bad_syntax", (1, 8), "expected a key, not '}'"),
    ("[1,]", "bad_syntax", (1, 4), "expected a value, not ']'"),
    ("[1}", "bad_syntax", (1, 3), "expected ',' or ']', not '}'"),
    ('{"a" 1}', "bad_syntax", (1, 6), "expected ':', not '1'"),
    ("{1:2}", "bad_syntax", (1, 2), "expected a key, not '1'"),
    ("[] []", "bad_syntax", (1, 4), "expected the end, not '['"),
    ("{'a':1}", "bad_syntax", (1, 2), 'JSON writes texts in "double quotes"'),
    ('{"a":1} // x', "bad_syntax", (1, 9), "JSON has no comments"),
    ("[01]", "bad_syntax", (1, 3), "expected ',' or ']', not '1'"),
    ("[NaN]", "bad_syntax", (1, 2), "'N' does not belong here"),
    ('["a\nb"]', "bad_syntax", (1, 2), "this text has no end, or holds a line break or an unknown escape"),
    ('["\\q"]', "bad_syntax", (1, 2), "this text has no end, or holds a line break or an unknown escape"),
    ('{"a":1,\n "a":2}', "duplicate_key", (2, 2), "'a' is already given on line 1"),
    ("[1e999]", "bad_number", (1, 2), "1e999 is too large for a number"),
    ("[9007199254740993]", "bad_number", (1, 2), "whole numbers end at 2^53, write larger ones as text"),
    (f"[{'9' * 100_000}]", "bad_number", (1, 2), "whole numbers end at 2^53, write larger ones as text"),
    ('["\\ud800"]', "bad_encoding", (1, 2), "half a surrogate pair is not a character"),
    ("[" * 100_000, "too_large", (1, 65), "nested more than 64 deep"),
    ('{"a":' * 50_000, "too_large", (1, 321), "nested more than 64 deep"),
    ('"' + '\\"' * 100_000, "bad_syntax", (1, 1), "this text has no end, or holds a line break or an unknown escape"),
]


@pytest.mark.parametrize(("text", "code", "place", "message"), JSON_REFUSED)
def test_json_refusals(text: str, code: str, place: tuple[int, int], message: str) -> None:
    read = read_plan(text, syntax="json")
    assert read.plan is None
    first = read.problems[0]
    assert (first.code, (first.line, first.column), first.message) == (f"plan.{code}", place, message)


def test_bytes() -> None:
    (encoding,) = read_plan(b"name: \xff").problems
    assert (encoding.code, encoding.message) == ("plan.bad_encoding", "not UTF-8 at byte 6")
    (size,) = read_plan(b"x" * 10_000_000, file="big.plan.yaml").problems
    assert (size.code, size.file) == ("plan.too_large", "big.plan.yaml")
    assert size.message == f"10000000 bytes, the limit is {PLAN_BYTES_MAX}"
    assert read_plan("é" * (PLAN_BYTES_MAX // 2 + 1)).problems[0].code == "plan.too_large"
    assert read_plan(b"\xef\xbb\xbfname: p\nsteps: [{id: a, tool: t}]").plan is not None


def test_the_name_decides_then_the_first_character() -> None:
    text = '{"name": "p", "steps": [{"id": "a", "tool": "t"}]}'
    flow = "{name: p, steps: [{id: a, tool: t}]}"
    assert read_plan(text).plan == read_plan(text, file="p.plan.yaml").plan == read_plan(text, file="p.json").plan
    assert read_plan(flow, file="p.plan.yml").plan is not None
    assert read_plan(flow).plan is None
    assert read_plan(flow, syntax="yaml").plan is not None


# --- positions -------------------------------------------------------------------------------------------------------

HEAD = "name: p\ninputs: {topic: string}\nsteps:\n- id: a\n  tool: search.local\n"
# The marked characters are what a problem points at.
PLACES: list[tuple[str, str]] = [
    ("unknown_input", '  with: {query: "${inputs.«topci»}"}'),
    ("unknown_input", "  with:\n    query: ${inputs.«topci»}"),
    ("unknown_input", "  with: {query: 'it''s ${inputs.«topci»}'}"),
    ("unknown_input", '  with: {query: "\\u00e9\\n\\"${inputs.«topci»}"}'),
    ("unknown_input", '  with: {query: "é😀${inputs.«topci»}"}'),
    ("unknown_input", '  with:\n    query: "x\n      y ${inputs.«topci»}"'),
    ("unknown_input", '  with:\n    query: "x\n\n      y ${inputs.«topci»}"'),
    ("unknown_input", '  with:\n    query: "x\n\n\n\n      y ${inputs.«topci»}"'),
    ("unknown_input", '  with:\n    query: "x \\\n      y ${inputs.«topci»}"'),
    ("unknown_input", "  with:\n    query: x\n      y ${inputs.«topci»}"),
    ("unknown_input", "  with:\r\n    query: ${inputs.«topci»}\r\n"),
    ("unknown_input", "  with:\r\n    query: 'x\r\n      ${inputs.«topci»}'\r\n"),
    ("unknown_key", "  with: {query: x}\n  «retries»: 3"),
    ("bad_value", "  with: {query: x}\n  timeout: «30 sec»"),
    ("unknown_reference", "  with: {query: x}\n  approve: Really ${«nope»}?"),
    ("unknown_reference", "  with: {query: x}\n  approve:\n    title: Really ${«nope»}?"),
    ("unknown_reference", "  with: {query: x}\n  when: ${1 < 2 and «nope».x}"),
    ("unknown_field", "  with: {query: x}\n  title: ${a.results[0].«titel»}"),
    ("unknown_function", "  with: {query: x}\n  title: ${«length»(a)}"),
    ("unknown_argument", "  with: {query: x, «qeury»: y}"),
    ("missing_argument", "  with: «{glob: x}»"),
    ("unknown_step", "  with: {query: x}\n  needs: [a, «zz»]"),
    ("duplicate_id", "  with: {query: x}\n- {id: «a», tool: search.local, with: {query: y}}"),
]


@pytest.mark.parametrize(("code", "text"), PLACES)
def test_places_in_yaml(code: str, text: str) -> None:
    before, marked, _ = (HEAD + text).replace("»", "«").split("«")
    lines = before.splitlines() if not before.endswith("\n") else [*before.splitlines(), ""]
    found = {problem.code: problem for problem in check_text((HEAD + text).replace("«", "").replace("»", ""))}
    problem = found[f"plan.{code}"]
    start = len(lines[-1]) + 1
    assert (problem.line, problem.column, problem.end_column) == (len(lines), start, start + len(marked))
    assert problem.file == "p.plan.yaml"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  with:\n    query: |\n      x\n      y ${inputs.topci}", 9),
        ("  with:\n    query: |\n      ${task.id}\n\n      ${inputs.topci} ${task.id}", 10),
        ("  with:\n    query: >-\n      x\n      y ${inputs.topci}", 9),
        ("  with:\n    query: |2\n        $${x} ${'${'}\n      y ${inputs.topci}", 9),
    ],
)
def test_only_the_line_in_block_scalars(text: str, line: int) -> None:
    (problem,) = (problem for problem in check_text(HEAD + text) if problem.code == "plan.unknown_input")
    assert (problem.line, problem.column, problem.end_column) == (line, None, None)


def test_what_is_missing_is_shown_where_it_should_be() -> None:
    (problem,) = (problem for problem in check_text(f"{HEAD}  title: t") if problem.code == "plan.missing_argument")
    assert (problem.line, problem.column) == (4, 3)


def test_places_in_json() -> None:
    text = json.dumps(plan(step("a", with_={"query": '\n"😀${inputs.x}'})), indent=2)
    (problem,) = check_text(text, "p.plan.json")
    line = text.splitlines().index(next(line for line in text.splitlines() if "query" in line))
    assert (problem.line, problem.column) == (line + 1, text.splitlines()[line].index("x}") + 1)


def test_other_places_become_lines() -> None:
    text = HEAD + "  with: {query: x}\n- {id: a, tool: search.local, with: {query: '${inputs.topic}'}}"
    (problem,) = check_text(text)
    assert problem.message == "'a' is already the id on line 4"


def test_problems_come_by_position() -> None:
    text = (
        "name: P\nsteps:\n- {id: A, tool: nope, retries: 1}\n- {id: task, tool: search.local, with: {query: '${x}'}}\n"
    )
    found = check_text(text)
    assert [(problem.line, problem.code) for problem in found] == [
        (1, "plan.bad_name"),
        (3, "plan.bad_name"),
        (3, "plan.unknown_tool"),
        (3, "plan.unknown_key"),
        (4, "plan.reserved_name"),
        (4, "plan.unknown_reference"),
    ]


def test_both_spellings_are_one_plan() -> None:
    value = plan(step("a", with_={"query": "${inputs.n}", "limit": 3}), inputs={"n": "string"})
    yaml_text = """\
name: p
inputs:
  n: string
steps:
  # a comment
  - id: a
    tool: search.local
    with: {limit: 3, query: "${inputs.n}"}
"""
    read = read_plan(yaml_text)
    assert read.plan is not None
    assert digest(read.plan) == digest(spec(value))


FRAGMENTS = st.lists(
    st.sampled_from(["name: p\n", "steps:\n", "- id: a\n", "  tool: t\n", "  with: {", "}", "[", "]", "&a", "*a",
                     "!t", "<<: ", "${", "'", '"', ": ", "- ", "\n", "  ", "\t", "#", "|\n", ">\n", "%", "---\n",
                     "{{", "010", "é", "\r\n"])
).map("".join)  # fmt: skip


@given(st.text() | st.binary() | FRAGMENTS, st.sampled_from(["yaml", "json", None]))
def test_any_text_is_a_plan_or_has_problems(text: str | bytes, syntax: str | None) -> None:
    read = read_plan(text, syntax=syntax)  # type: ignore[arg-type]  # one of the words
    assert (read.plan is None) == bool(read.problems)
    for problem in read.checked(lambda _: ()):
        assert problem.code.startswith("plan.")


KEYS = [
    "id",
    "tool",
    "with",
    "steps",
    "name",
    "retry",
    "approve",
    "when",
    "needs",
    "inputs",
    "finally",
    "title",
    "fallback",
    "x",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner),
)


@settings(max_examples=40)
@given(VALUES)
def test_any_value_is_a_plan_or_has_problems(value: JsonValue) -> None:
    wrapped: JsonObject = {"name": "p", "steps": value}
    for candidate in (value, wrapped, {"name": "p", "steps": [value]}):
        text = json.dumps(candidate)
        assert [problem.line for problem in check_text(text, "p.json")] or read_plan(text).plan is not None
