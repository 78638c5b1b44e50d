"""The Codec: strict in both directions, canonical, bounded, and never anything but a value or NotJson."""

import hashlib
import json
from math import inf, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everstep.domain.canonical import canonical_text
from everstep.domain.values import ARTIFACT_BYTES_MAX, INLINE_BYTES_MAX, JsonValue, NotJson
from everstep.wire.values import Codec, canonical, digest_of, loads_strict

CODEC = Codec()
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-(2.0**53), 2.0**53)
    | st.floats(1e21, 1e300)
    | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


def nested(depth: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(depth):
        value = [value]
    return value


def refused(value: object) -> NotJson:
    with pytest.raises(NotJson) as caught:
        CODEC.seal(value)  # type: ignore[arg-type]  # what tools return is not always JSON
    return caught.value


def test_a_sealed_value_is_named_by_its_canonical_bytes() -> None:
    sealed = CODEC.seal({"b": [1, True, None], "a": "é"}, untrusted=True)
    assert sealed.raw == '{"a":"é","b":[1,true,null]}'.encode()
    assert sealed.digest == "sha256:" + hashlib.sha256(sealed.raw).hexdigest()
    assert (sealed.size_bytes, sealed.untrusted, sealed.by_reference, sealed.present) == (28, True, False, True)


@given(JSON)
@example({"\U0001f600": 1, "\ufb33": 2})
@example([1.0, 1e21, 1e-7, 5e-324, 0.1, -0.0, 123456.789, 1e15, 99999999999999.9])
@example("\x7f\x80\u2028\x00")
def test_both_writers_agree(value: JsonValue) -> None:
    """The quick writer is used only where it writes what the exact one writes."""
    assert canonical(value) == canonical_text(value).encode()


@given(st.floats(1e-4, 1e15, exclude_max=True))
def test_ordinary_fractions_need_no_exact_writer(number: float) -> None:
    assert canonical(number) == canonical_text(number).encode()
    assert canonical(-number) == canonical_text(-number).encode()


@given(JSON)
def test_what_is_sealed_reads_back(value: JsonValue) -> None:
    assert loads_strict(canonical(value)) == value
    assert canonical(loads_strict(json.dumps(value))) == canonical(value)


@pytest.mark.parametrize(
    ("value", "pointer", "reason"),
    [
        (nan, "", "nan is not a JSON number"),
        ({"a": [1, inf]}, "/a/1", "inf is not a JSON number"),
        ({"a": {"b/c": 2**53 + 1}}, "/a/b~1c", "whole numbers end at 2^53; send larger ones as text"),
        ([1e20], "/0", "whole numbers end at 2^53; send larger ones as text"),
        ([-(2**60)], "/0", "whole numbers end at 2^53; send larger ones as text"),
        (["\ud800"], "/0", "half a surrogate pair is not a character"),
        ({"\udc00": 1}, "", "a key holds half a surrogate pair"),
        ({1: 2}, "", "the key 1 is not text"),
        ((1, 2), "", "a tuple is not a JSON value"),
        ({"a": {1, 2}}, "/a", "a set is not a JSON value"),
        ([b"x"], "/0", "a bytes is not a JSON value"),
        (object(), "", "a object is not a JSON value"),
    ],
)
def test_refusals_say_where(value: object, pointer: str, reason: str) -> None:
    found = refused(value)
    assert (found.pointer, found.reason) == (pointer, reason)
    assert str(found) == (f"{pointer}: {reason}" if pointer else reason)


def test_depth() -> None:
    assert canonical(nested(64)) == b"[" * 64 + b"1" + b"]" * 64
    assert refused(nested(65)).reason == "nested more than 64 deep"
    assert refused(nested(100_000)).reason == "nested more than 64 deep"


def test_sizes() -> None:
    assert not CODEC.seal("x" * (INLINE_BYTES_MAX - 2)).by_reference
    assert CODEC.seal("x" * (INLINE_BYTES_MAX - 1)).by_reference
    assert CODEC.seal("x" * (ARTIFACT_BYTES_MAX - 2)).size_bytes == ARTIFACT_BYTES_MAX
    assert "more than 16777216 bytes" in refused("x" * (ARTIFACT_BYTES_MAX - 1)).reason
    assert Codec(inline_bytes_max=4, bytes_max=8).seal("123").by_reference


def test_a_shared_value_is_measured_before_it_is_written() -> None:
    """Bindings may put one value in many places: gigabytes on the wire, little here."""
    small = Codec(bytes_max=1_000_000)
    texts: JsonValue = [["x" * 100_000]] * 100_000
    numbers: JsonValue = [[0] * 100_000] * 100_000
    for value in (texts, numbers):
        with pytest.raises(NotJson, match="more than 1000000 bytes"):
            small.seal(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("nan", "not JSON"),
        ("NaN", "not JSON"),
        ("1e400", "not JSON"),
        ("01", "not JSON"),
        ("[1,]", "not JSON"),
        ('{"a" 1}', "not JSON"),
        ("'a'", "not JSON"),
        ("\ufeff1", "not JSON"),
        ("1 2", "not JSON"),
        ('"\\ud800"', "not JSON"),
        ('"\x00"', "not JSON"),
        ('"a', "not JSON"),
        ("9007199254740993", "whole numbers"),
        ("1" * 10_000, "not JSON"),
        ('{"a":1,"a":1}', 'the key "a" is given twice in one object'),
        ('[{"a":{"x":1,"y":[{"b":1,"\\u0062":2}]}}]', 'the key "\\u0062" is given twice in one object'),
        ('{"__proto__":1,"__proto__":2}', 'the key "__proto__" is given twice'),
        ("[" * 65 + "]" * 65, "nested more than 64 deep"),
        ("[" * 200_000, "nested more than 64 deep"),
        ('{"a":' * 100_000, "nested more than 64 deep"),
        ('"' + '\\"' * 100_000, "not JSON"),
        ('"' + '\\"' * 100_000 + "\\", "not JSON"),
        ('["\\"[[[[", ' * 100_000, "nested more than 64 deep"),
        ('"\ud800"', "half a surrogate pair"),
    ],
)
def test_foreign_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotJson) as caught:
        loads_strict(text)
    assert caught.value.reason.startswith(reason)


def test_foreign_json_is_read() -> None:
    assert loads_strict(b' {"a": [1, -0, 1.5e3, "x:y", "\\u00e9[{"], "b": {"a": 1}} ') == {
        "a": [1, 0, 1500.0, "x:y", "é[{"],
        "b": {"a": 1},
    }
    assert loads_strict("[" * 64 + "]" * 64)
    assert loads_strict('["' + "[" * 1_000 + '"]') == ["[" * 1_000]


def test_foreign_bytes() -> None:
    with pytest.raises(NotJson, match="not UTF-8 at byte 1"):
        loads_strict(b'"\xff"')
    with pytest.raises(NotJson, match="more than 10 bytes"):
        loads_strict(b"[1,2,3,4,5,6]", bytes_max=10)


@given(st.text() | st.binary() | st.lists(st.sampled_from('[]{}",:\\01eE-+.tfn ul')).map("".join))
def test_anything_is_a_value_or_not_json(data: str | bytes) -> None:
    try:
        value = loads_strict(data)
    except NotJson:
        return
    assert canonical(value)
    assert value == json.loads(data)


def test_digest_of_bytes() -> None:
    assert digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_payload_and_validator() -> None:
    assert CODEC.payload([1.0]) == b"[1]"
    assert CODEC.validator({"type": "integer"})("x") == [("", "must be an integer")]
