"""Small tools, each called as the engine calls it: arguments checked, result checked."""

import difflib
import hashlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.adapters.tools.family import SmallTools
from everstep.adapters.tools.summary import CHARS_MAX, summarize
from everstep.adapters.tools.text import DIFF_LINES_MAX, text_tools
from everstep.adapters.tools.values import json_tools, merged
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Misconfigured, ResourceExceeded
from everstep.wire.schema import compile_schema
from everstep.wire.values import Codec, canonical
from tests.unit.contexts import call_of, context

FAMILIES = (text_tools(), json_tools(Codec()))
SPECS = {spec.name: (family, spec) for family in FAMILIES for spec in family.tools()}


async def called(name: str, arguments: JsonObject) -> JsonValue:
    family, spec = SPECS[name]
    assert isinstance(family, SmallTools)
    assert compile_schema(spec.input_schema)(arguments) == []
    result = await family.execute(call_of(name, arguments), context())
    assert spec.output_schema is not None
    assert compile_schema(spec.output_schema)(result) == []  # type: ignore[arg-type]
    canonical(result)  # type: ignore[arg-type]
    return result  # type: ignore[return-value]


def test_the_family() -> None:
    assert sorted(SPECS) == [
        "json.merge", "json.parse", "json.pick", "json.validate",
        "text.diff", "text.hash", "text.join", "text.split", "text.summarize", "text.truncate",
    ]  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_is_whole(name: str) -> None:
    spec = SPECS[name][1]
    assert spec.effect is Effect.PURE
    assert spec.title
    assert spec.description.endswith(".")
    properties = spec.input_schema["properties"]
    assert isinstance(properties, dict)
    for argument in properties.values():
        assert isinstance(argument, dict)
        assert argument["x-everstep-kind"] == "opaque"
        assert argument["description"]
    assert spec.input_schema["additionalProperties"] is False
    assert compile_schema(spec.input_schema)({"no": "such"}) != []


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("text.join", {"texts": ["a", "b"]}, {"text": "a\nb"}),
        ("text.join", {"texts": [], "separator": ", "}, {"text": ""}),
        ("text.split", {"text": "a\n\n b "}, {"parts": ["a", "", " b "]}),
        ("text.split", {"text": "a, ,b", "separator": ",", "trim": True}, {"parts": ["a", "b"]}),
        ("text.truncate", {"text": "abc", "chars": 3}, {"text": "abc", "truncated": False}),
        ("text.truncate", {"text": "abcd", "chars": 3}, {"text": "ab…", "truncated": True}),
        ("text.truncate", {"text": "abcd", "chars": 2, "ending": " etc."}, {"text": " e", "truncated": True}),
        ("text.truncate", {"text": "abcd", "chars": 0}, {"text": "", "truncated": True}),
        ("text.hash", {"text": "ü"}, {"hash": hashlib.sha256("ü".encode()).hexdigest(), "algorithm": "sha256"}),
        (
            "text.hash",
            {"text": "", "algorithm": "md5"},
            {"hash": "d41d8cd98f00b204e9800998ecf8427e", "algorithm": "md5"},
        ),
        ("text.diff", {"old": "a\nb", "new": "a\nb"}, {"diff": "", "changed": False}),
        (
            "text.diff",
            {"old": "a\nb", "new": "a\nc", "context": 0},
            {"diff": "--- old\n+++ new\n@@ -2 +2 @@\n-b\n+c", "changed": True},
        ),
        ("json.parse", {"text": ' {"a": [1, 2.5, null]} '}, {"value": {"a": [1, 2.5, None]}}),
        ("json.pick", {"value": {"a": [1, {"b/c": 2}]}, "pointer": "/a/1/b~1c"}, {"value": 2}),
        ("json.pick", {"value": [1], "pointer": ""}, {"value": [1]}),
        ("json.pick", {"value": {"": 3}, "pointer": "/"}, {"value": 3}),
        ("json.pick", {"value": {"a": None}, "pointer": "/a", "default": 1}, {"value": None}),
        ("json.pick", {"value": {}, "pointer": "/a", "default": None}, {"value": None}),
        ("json.pick", {"value": [0], "pointer": "/01", "default": "no"}, {"value": "no"}),
        ("json.pick", {"value": [0], "pointer": "/-", "default": "no"}, {"value": "no"}),
        ("json.pick", {"value": [0], "pointer": "/99999999999", "default": "no"}, {"value": "no"}),
        ("json.pick", {"value": "text", "pointer": "/0", "default": "no"}, {"value": "no"}),
        ("json.validate", {"value": 1, "schema": {"type": "integer"}}, {"valid": True, "problems": []}),
        (
            "json.validate",
            {"value": {"a": 1}, "schema": {"properties": {"a": {"type": "string"}}, "required": ["b"]}},
            {
                "valid": False,
                "problems": [{"path": "", "message": "needs 'b'"}, {"path": "/a", "message": "must be text"}],
            },
        ),
    ],
)
async def test_results(name: str, arguments: JsonObject, result: JsonValue) -> None:
    assert await called(name, arguments) == result


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("json.parse", {"text": "{"}, "cannot be read"),
        ("json.parse", {"text": '{"a":1,"a":2}'}, "given twice"),
        ("json.parse", {"text": "NaN"}, "cannot be read"),
        ("json.parse", {"text": "[" * 1_000 + "]" * 1_000}, "nested more than"),
        ("json.pick", {"value": {}, "pointer": "/a"}, "there is nothing at '/a'"),
        ("json.pick", {"value": {}, "pointer": "a"}, "not a JSON Pointer"),
        ("json.validate", {"value": 1, "schema": {"type": "intger"}}, "not a JSON Schema"),
        ("json.validate", {"value": 1, "schema": {"$ref": "https://example.test/s"}}, "not a JSON Schema"),
    ],
)
async def test_what_cannot_be_done_is_said(name: str, arguments: JsonObject, message: str) -> None:
    with pytest.raises(Misconfigured, match=message) as caught:
        await called(name, arguments)
    assert caught.value.code == "bad_argument"


# RFC 7396, appendix A
MERGES: list[tuple[JsonValue, JsonValue, JsonValue]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), MERGES, ids=json.dumps)
async def test_merging_as_the_standard_says(target: JsonValue, patch: JsonValue, result: JsonValue) -> None:
    before = json.dumps(target)
    assert await called("json.merge", {"target": target, "patch": patch}) == {"value": result}
    assert json.dumps(target) == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, json_values)
def test_merging_twice_changes_nothing_more(target: JsonValue, patch: JsonValue) -> None:
    once = merged(target, patch)
    assert merged(once, patch) == once


@given(st.lists(st.text(st.characters(codec="utf-8").filter(lambda one: one != "|"))), st.just("|"))
async def test_split_takes_join_back(texts: list[str], separator: str) -> None:
    joined = await called("text.join", {"texts": list(texts), "separator": separator})
    assert isinstance(joined, dict)
    parts = await called("text.split", {"text": joined["text"], "separator": separator})
    assert parts == {"parts": texts or [""]}


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 20), st.text(st.characters(codec="utf-8"), max_size=5))
async def test_a_shortened_text_is_never_too_long(text: str, chars: int, ending: str) -> None:
    result = await called("text.truncate", {"text": text, "chars": chars, "ending": ending})
    assert isinstance(result, dict)
    assert len(str(result["text"])) <= chars
    assert result["truncated"] == (len(text) > chars)


async def test_texts_too_long_to_compare_are_refused() -> None:
    with pytest.raises(ResourceExceeded, match="2001 lines") as caught:
        await called("text.diff", {"old": "a\n" * (DIFF_LINES_MAX + 1), "new": ""})
    assert caught.value.details == {"limit": "lines", "used": 2001, "max": 2000}


async def test_the_worst_comparison_does_not_stop_the_loop_for_long() -> None:
    lines = [str(number % 95) for number in range(DIFF_LINES_MAX)]
    old, new = "\n".join(lines), "\n".join(reversed(lines))
    began = time.monotonic()
    result = await called("text.diff", {"old": old, "new": new})
    assert time.monotonic() - began < 60
    assert isinstance(result, dict)
    diff = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "old", "new", lineterm=""))
    assert result["diff"] == "\n".join(diff)


STORY = """Durable tasks survive a crash. A worker may die at any time.
The journal holds every durable step of the tasks! Nobody reads menus here.
Home
A durable journal makes tasks survive when a worker dies.
"""


def test_a_summary_holds_the_most_telling_sentences_in_order() -> None:
    summary = summarize([STORY], 2)
    assert isinstance(summary, dict)
    assert summary["text"] == (
        "Durable tasks survive a crash. A durable journal makes tasks survive when a worker dies."
    )
    assert summary["markdown"] == (
        "- Durable tasks survive a crash.\n- A durable journal makes tasks survive when a worker dies."
    )
    assert summary["sources"] == [{"index": 0, "title": None, "url": None}]


async def test_a_summary_of_pages_names_them() -> None:
    page: JsonObject = {"text": STORY, "url": "https://example.test/", "title": "Story", "status": 200}
    summary = await called("text.summarize", {"texts": [None, page, "Tasks survive a durable crash."], "sentences": 3})
    assert isinstance(summary, dict)
    assert summary["sources"] == [
        {"index": 1, "title": "Story", "url": "https://example.test/"},
        {"index": 2, "title": None, "url": None},
    ]
    assert "[2]" in str(summary["markdown"])
    assert str(summary["markdown"]).endswith("\n\n1. Story https://example.test/")


def test_a_sentence_said_twice_is_kept_once() -> None:
    summary = summarize(["Tasks survive a durable crash. " * 5], 5)
    assert isinstance(summary, dict)
    assert summary["text"] == "Tasks survive a durable crash."


def test_nothing_to_say() -> None:
    nothing = {"text": "", "markdown": "", "sources": []}
    for texts in ([], [None], [""], ["..."], [{"text": None}]):
        assert summarize(texts, 5) == nothing  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Durable things last.", "Durable things last."),
        ("word " * 100, "word " * 59 + "word"),
        ("A menu\nB side", "A menu"),
    ],
)
def test_a_text_without_usual_sentences_is_not_passed_over(text: str, told: str) -> None:
    summary = summarize([text], 1)
    assert isinstance(summary, dict)
    assert summary["text"] == told


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8")), max_size=5), st.integers(1, 9))
def test_a_summary_is_the_same_every_time(texts: list[str | None], sentences: int) -> None:
    first, second = summarize(texts, sentences), summarize(texts, sentences)
    assert first == second


@pytest.mark.parametrize("hostile", [".", "a", "\n", "a.b", '."', "a.' ", "Wort und Wort. "])
def test_hostile_texts_take_no_longer(hostile: str) -> None:
    began = time.monotonic()
    summarize([hostile * CHARS_MAX], 5)
    assert time.monotonic() - began < 60
