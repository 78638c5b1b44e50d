"""Bindings: types are kept, data is never read as an expression, absence is a value, laziness is exact."""

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everstep.domain import bindings
from everstep.domain.bindings import (
    Absent,
    Compiled,
    Found,
    NeedsPayload,
    Resolved,
    Unresolved,
    compile_value,
    references,
    render,
    resolve,
)
from everstep.domain.evaluation import RESULT_BYTES_MAX
from everstep.domain.ids import Digest
from everstep.domain.values import JsonValue

PAGE: JsonValue = {"title": "Sun", "status": 200, "tags": ["a", "b"], "from": "x", "a-b": None, "ok": True}


class Names:
    """A scope over plain values; remembers what it was asked."""

    def __init__(self, **roots: Found | Absent) -> None:
        self._roots = roots
        self.asked: list[str] = []

    def root(self, name: str) -> Found | Absent:
        self.asked.append(name)
        return self._roots.get(name, Absent(why="unknown"))

    def step(self, step_id: str) -> Mapping[str, JsonValue] | None:
        return {"status": "failed", "error": {"code": "x"}, "attempts": 2} if step_id == "page" else None


SCOPE = Names(
    page=Found(value=PAGE),
    web=Found(value={"text": "hostile ${page.title} $${x}"}, untrusted=True),
    inputs=Found(value={"topic": "solar", "n": 3, "none": None}),
    failed=Absent(why="failed", producer="load"),
    skipped=Absent(why="skipped", producer="maybe"),
    far=Absent(why="elsewhere", producer="big", digest=Digest("sha256:1")),
    farther=Absent(why="elsewhere", producer="bigger", digest=Digest("sha256:2")),
)


def value_of(text: JsonValue) -> JsonValue:
    result = resolve(compile_value(text), SCOPE)
    assert isinstance(result, Resolved), result
    return result.value


def why_not(value: JsonValue) -> Unresolved:
    result = resolve(compile_value(value), SCOPE)
    assert isinstance(result, Unresolved), result
    return result


VALUES: list[tuple[str, JsonValue]] = [
    ("${page}", PAGE),
    ("${page.status}", 200),
    ("${page.ok}", True),
    ('${page["a-b"]}', None),
    ("${page.from}", "x"),
    ("${page.tags[-1]}", "b"),
    ("n=${page.status}", "n=200"),
    ("${page.tags} ${page.ok} ${page.status}", '["a","b"] true 200'),
    ("$${page}", "${page}"),
    ('${"$"}${page.status}', "$200"),
    ("${len(page.tags)}", 2),
    ("${len(page)}", 6),
    ("${len('añ😀')}", 3),
    ("${default(page.nope, 'x')}", "x"),
    ("${default(inputs.none, 'x')}", "x"),
    ("${default(failed.a.b, default(skipped, 1))}", 1),
    ("${default(page.status, nope)}", 200),
    ("${join(page.tags, ', ')}", "a, b"),
    ("${join([1, null, 'x', [2]], '-')}", "1-null-x-[2]"),
    ("${json(page.tags)}", '["a","b"]'),
    ("${json('x')}", '"x"'),
    ("${text('x')}", "x"),
    ("${text(1.0)}", "1"),
    ("${lower('ÄB')} ${upper('ß')} ${trim('  a ')}", "äb SS a"),
    ("${1 == 1.0}", True),
    ("${'1' == 1}", False),
    ("${true == 1}", False),
    ("${[1, page] == [1.0, page]}", True),
    ("${[true] == [1]}", False),
    ("${page == page}", True),
    ("${1 != 2}", True),
    ("${1 < 1.5}", True),
    ("${2 >= 2}", True),
    ("${'a' <= 'b'}", True),
    ("${3 > 4}", False),
    ("${'b' in page.tags}", True),
    ("${1 in [true, 1.0]}", True),
    ("${true in [1]}", False),
    ("${'ell' in 'hello'}", True),
    ("${'title' in page}", True),
    ("${'zz' not in page}", True),
    ("${not page.ok}", False),
    ("${not null}", True),
    ("${null or false}", False),
    ("${true or nope}", True),
    ("${false and nope}", False),
    ("${1 if true else nope}", 1),
    ("${nope if null else 2}", 2),
    ("${steps.page.status}", "failed"),
    ("${steps.page.error.code}", "x"),
    ("${[inputs.n, [page.ok]]}", [3, [True]]),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: JsonValue) -> None:
    result = value_of(text)
    assert result == value
    assert type(result) is type(value)


REASONS = [
    ("${nope}", "unknown", "nope", None),
    ("${failed.x}", "failed", "failed.x", "load"),
    ("${skipped}", "skipped", "skipped", "maybe"),
    ("${page.nope}", "no_field", "page.nope", None),
    ("${page.tags[2]}", "no_field", "page.tags[2]", None),
    ("${page.tags.x}", "no_field", "page.tags.x", None),
    ("${page.title[0]}", "no_field", "page.title[0]", None),
    ('${page["x y"]}', "no_field", 'page["x y"]', None),
    ("${page[0]}", "no_field", "page[0]", None),
    ("${steps.zz.status}", "unknown", "steps.zz.status", None),
    ("${steps}", "unknown", "steps", None),
    ("${len(page.status)}", "bad_type", "page.status", None),
    ("${join(page.title, ',')}", "bad_type", "page.title", None),
    ("${join(page.tags, 1)}", "bad_type", "page.tags", None),
    ("${lower(page.tags)}", "bad_type", "page.tags", None),
    ("${1 < 'a'}", "bad_type", "", None),
    ("${true < false}", "bad_type", "", None),
    ("${1 in 2}", "bad_type", "", None),
    ("${1 in 'a'}", "bad_type", "", None),
    ("${not page.title}", "bad_type", "page.title", None),
    ("${1 if 'false' else 2}", "bad_type", "", None),
    ("${default(len(1), 2)}", "bad_type", "", None),
]


@pytest.mark.parametrize(("text", "why", "reference", "producer"), REASONS)
def test_reasons(text: str, why: str, reference: str, producer: str | None) -> None:
    found = why_not({"ok": 1, "query": [text]})
    assert (found.argument, found.why, found.reference, found.producer) == ("query", why, reference, producer)
    assert found.message


def test_the_first_failing_argument_is_named() -> None:
    assert why_not({"a": "${page.ok}", "b": {"c": "${failed}"}, "d": "${nope}"}).argument == "b"
    assert why_not("${nope}").argument == ""


def test_constants_are_the_value_itself() -> None:
    value: JsonValue = {"a": [1, "x", {"b": None}]}
    compiled = compile_value(value)
    assert compiled.constant
    assert value_of(value) is value
    assert value_of(["$${a}", 1]) == ["${a}", 1]


def test_keys_are_never_templates() -> None:
    assert value_of({"${page.title}": "${page.status}"}) == {"${page.title}": 200}


def test_inserted_text_is_never_read_again() -> None:
    assert value_of("${web.text}") == "hostile ${page.title} $${x}"
    assert value_of("<${web.text}>") == "<hostile ${page.title} $${x}>"


def test_taint_follows_what_was_used() -> None:
    def tainted(text: JsonValue) -> bool:
        result = resolve(compile_value(text), SCOPE)
        assert isinstance(result, Resolved)
        return result.untrusted

    assert tainted("${web.text}")
    assert tainted({"a": 1, "b": ["${len(web.text)}"]})
    assert tainted("${'x' if web.text == '' else 'y'}")
    assert tainted("${steps.page.error}")
    assert tainted("${steps.page}")
    assert not tainted("${steps.page.status}")
    assert not tainted("${page}")
    assert not tainted("${default(page.title, web.text)}")
    assert not tainted("${true or web.text == ''}")


def test_artifacts_are_asked_for_together_and_first() -> None:
    compiled = compile_value({"a": "${nope}", "b": "${far.x}", "c": ["${farther}", "${far}"]})
    assert resolve(compiled, SCOPE) == NeedsPayload(digests=(Digest("sha256:1"), Digest("sha256:2")))
    unused = resolve(compile_value("${default(page.title, far)}"), SCOPE)
    assert unused == Resolved(value="Sun")


def test_laziness_asks_for_nothing_more() -> None:
    scope = Names(a=Found(value=True))
    resolve(compile_value("${a or b}"), scope)
    resolve(compile_value("${1 if a else b}"), scope)
    resolve(compile_value("${default(a, b)}"), scope)
    assert scope.asked == ["a", "a", "a"]


@pytest.mark.parametrize(
    ("condition", "answer"),
    [(True, True), (False, False), ("${page.ok}", True), ("${null}", False), ("${page.status > 100}", True)],
)
def test_conditions(condition: JsonValue, answer: bool) -> None:
    assert bindings.test(compile_value(condition), SCOPE) is answer


@pytest.mark.parametrize("condition", ["${'false'}", "${1}", "x ${page.ok}", "${page}", "${page.title}"])
def test_anything_else_is_no_condition(condition: JsonValue) -> None:
    answer = bindings.test(compile_value(condition), SCOPE)
    assert isinstance(answer, Unresolved)
    assert answer.why == "bad_type"


def test_conditions_pass_on_what_is_missing() -> None:
    assert isinstance(bindings.test(compile_value("${far}"), SCOPE), NeedsPayload)
    missing = bindings.test(compile_value("${failed.x}"), SCOPE)
    assert isinstance(missing, Unresolved)
    assert missing.producer == "load"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Plain", "Plain"),
        ("Read ${page.title} (${page.status})", "Read Sun (200)"),
        ("${page.status}", "200"),
        ("After ${draft.markdown}", "After <output from draft>"),
        ("${failed}", "<output from failed>"),
        ("${far.x} and ${inputs.zz}", "<output from far> and <input zz>"),
        ("${item.url} ${index} ${steps.zz.status}", "<item url> <index> <step zz>"),
        ("${len(1)}", "<no value>"),
    ],
)
def test_titles(title: str, shown: str) -> None:
    assert render(compile_value(title), SCOPE) == shown


def test_references_name_place_and_need() -> None:
    found = references(
        compile_value({"a/b": ["x ${page.title} ${default(web.text, inputs.n)}", "${steps.page.status}"]})
    )
    assert [(ref.root, ref.path, ref.optional, ref.pointer, ref.offset) for ref in found] == [
        ("page", ("title",), False, "/a~1b/0", 4),
        ("web", ("text",), True, "/a~1b/0", 26),
        ("inputs", ("n",), True, "/a~1b/0", 36),
        ("steps", ("page", "status"), True, "/a~1b/1", 2),
    ]


def test_syntax_errors_are_values() -> None:
    compiled = compile_value({"a": "${", "b": ["${length(x)}"]})
    assert [(error.pointer, error.why.code) for error in compiled.errors] == [
        ("/a", "bad_expression"),
        ("/b/0", "unknown_function"),
    ]


@pytest.mark.parametrize(
    "text",
    ["${[a, a]}", "${json(a)}", "x${a}${a}", "${join([a, a], '')}", "${a}", "${[b]}", "${b}", "${json(b)}", "${c}"],
)
def test_results_are_bounded(text: str) -> None:
    scope = Names(
        a=Found(value="x" * (RESULT_BYTES_MAX - 1)),
        b=Found(value=[{"k": "é" * 100}] * 6_000),
        c=Found(value="é" * (RESULT_BYTES_MAX // 2 + 1)),
    )
    result = resolve(compile_value(text), scope)
    if text == "${a}":
        assert isinstance(result, Resolved)
    else:
        assert isinstance(result, Unresolved)
        assert result.why == "too_large"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SHREDS = st.lists(
    st.sampled_from(["${", "}", "a", "b.c", "[0]", "(", ")", "'x'", "len(", "default(", "join(", ",", " and ", " if ",
                     "==", "<", " in ", "not ", "1", "true", "null", " ", "$", "text(", "json(", "steps.page"])
).map("".join)  # fmt: skip


@given(JSON)
def test_a_lone_binding_keeps_value_and_type(value: JsonValue) -> None:
    scope = Names(v=Found(value=value))
    assert resolve(compile_value({"x": ["${v}"]}), scope) == Resolved(value={"x": [value]})
    result = resolve(compile_value("${v}"), scope)
    assert isinstance(result, Resolved)
    assert result.value is value


@given(st.text())
@example("${v}")
@example("$${v}")
def test_no_text_is_scanned_twice(text: str) -> None:
    scope = Names(v=Found(value=text))
    assert resolve(compile_value("<${v}|${v}>"), scope) == Resolved(value=f"<{text}|{text}>")


@given(st.lists(SHREDS | JSON, max_size=3), JSON)
def test_nothing_ever_raises(parts: list[JsonValue], value: JsonValue) -> None:
    scope = Names(a=Found(value=value), b=Found(value={"c": value}, untrusted=True), v=Absent(why="failed"))
    compiled: Compiled = compile_value({"x": parts})
    references(compiled)
    result = resolve(compiled, scope)
    assert isinstance(result, Resolved | Unresolved)
    for part in parts:
        render(compile_value(part), scope)
        bindings.test(compile_value(part), scope)


@given(JSON)
def test_values_without_bindings_are_untouched(value: JsonValue) -> None:
    compiled = compile_value(value)
    if not compiled.texts and not compiled.errors and "$${" not in repr(value):
        assert resolve(compiled, SCOPE) == Resolved(value=value)
