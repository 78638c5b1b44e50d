"""`plan fmt`: one shape, the same digest, and nothing changes the second time."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everstep.domain.plan import PlanSpec
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.fmt import format_json, format_yaml
from everstep.wire.normal import digest, from_json
from everstep.wire.plan import Syntax, read_plan
from everstep.wire.yamltext import has_comments
from tests.unit.known_tools import plan, spec, step
from tests.unit.wire.test_normal import FULL

PRETTY = """\
name: brief
title: Brief on ${inputs.topic}
inputs:
  topic: string
  to:
    type: string
    format: email
defaults:
  retry: 2
steps:
  - id: hits
    tool: search.web
    with:
      query: ${inputs.topic}
      limit: 6
    approve: "Really: ${inputs.topic}?"
  - id: note
    tool: file.write
    with:
      path: brief.md
      text: |
        # Brief
        ${hits.results}

        end
      tags: []
      extra: {}
    needs: []
    resources:
      - docs://x
outputs:
  file: ${note.path}
"""


def read(text: str, syntax: Syntax) -> PlanSpec:
    found = read_plan(text, syntax=syntax)
    assert found.plan is not None, (found.problems, text)
    return found.plan


def check_both(value: PlanSpec) -> None:
    for write, syntax in ((format_yaml, "yaml"), (format_json, "json")):
        text = write(value)
        again = read(text, syntax)  # type: ignore[arg-type]  # one of the words
        assert digest(again) == digest(value)
        assert write(again) == text


def test_a_formatted_file_stays_as_it_is() -> None:
    assert format_yaml(read(PRETTY, "yaml")) == PRETTY


def test_order_of_keys_and_short_forms() -> None:
    messy = """\
outputs: {x: 1}
steps: [{retry: {times: 3}, timeout: 90s, with: {b: 1, a: 2}, tool: 't', id: "a", approve: {title: x}}]
name: p
"""
    assert (
        format_yaml(read(messy, "yaml"))
        == """\
name: p
steps:
  - id: a
    tool: t
    with:
      b: 1
      a: 2
    timeout: 1m30s
    retry: 3
    approve: x
outputs:
  x: 1
"""
    )


def test_json() -> None:
    assert format_json(spec(plan(step("a", retry=3, with_={"query": "é\x7f"})))) == (
        '{\n  "name": "p",\n  "steps": [\n    {\n      "id": "a",\n      "tool": "search.local",\n'
        '      "with": {\n        "query": "é\\u007f"\n      },\n      "retry": 3\n    }\n  ]\n}\n'
    )


def test_every_key() -> None:
    check_both(spec(FULL))


TEXTS = [
    "", " ", "a ", " a", "a: b", "a:", ":a", "a #b", "a#b", "#a", "- a", "-a", "-", "--- a", "...", "? a", "?a",
    "[a", "{a", "a]", "a,b",
    "&a", "*a", "!a", "|", ">", "'a", '"a', "%a", "@a", "`a", "<<", "=", "null", "~", "true", "Yes", "off",
    "1", "-1", "010", "0x1F", "0o7", "1e3", ".5", ".inf", ".NaN", "1_000", "12:30", "2026-01-01",
    "2026-01-01T00:00:00Z",
    "a\nb", "a\n", "\na", "a\n\n", "a\n\n\nb\n", " a\nb", "a\n b", "a \nb", "a\tb\nc", "a\r\nb", "\n", "\n\n", "#\n#",
    "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\ufeff", "\u200b", "\U0001f600", "\U000e0001", "é", "日本", "\ufffe",
    "a\\b", "C:\\x", '"', "'", "''", "${a}", "$${a}", "{{a}}", "a: ${b}", "- ${b}", "${a} # b", "x" * 2_000,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_awkward_texts(text: str) -> None:
    values: JsonObject = {"query": text, "list": [text, [text], {"k": text}], "map": {text: text, "x": [text]}}
    escaped: JsonObject = {"title": text or None}
    check_both(spec(plan(step("a", with_=values, **escaped), outputs={"o": text})))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-(2.0**53), 2.0**53)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), JSON), JSON)
@example({"a": "b\n c"}, ["x\n", {"y": "\nz"}])
def test_any_values(arguments: JsonObject, output: JsonValue) -> None:
    found = from_json(plan(step("a", with_=arguments), outputs={"o": output})).plan
    assert found is not None
    check_both(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: b\n", False),
        ("# x\na: b\n", True),
        ("a: b # x\n", True),
        ("a: b#x\n", False),
        ('a: "b # x"\n', False),
        ("a: 'b # x'\n", False),
        ("a: |\n  b # x\n  # y\n", False),
        ("a: | # x\n  b\n", True),
        ("a: >-\n  b\n# x\n", True),
        ("a: {b: c} # x\n", True),
        ("a: {b: c,\n  # x\n  d: e}\n", True),
        ("a: b\n#", True),
        ("a: b c\n  d #x\n", True),
    ],
)
def test_comments_are_found(text: str, found: bool) -> None:
    assert has_comments(text) is found
