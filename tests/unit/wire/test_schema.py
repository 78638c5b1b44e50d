"""Compiled schemas: every breach, in words; nothing is fetched, nothing backtracks."""

import pytest

from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.schema import compile_schema

OBJECT: JsonObject = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 1, "maximum": 3},
        "b": {"type": ["string", "null"], "minLength": 2, "maxLength": 3},
        "c": {"enum": ["x", 1, None]},
        "d": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "number"}},
        "e": {"type": "string", "pattern": "^x+$"},
        "f": {"type": "string", "format": "email"},
        "g": {"type": "object", "required": ["h", "i"]},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": 1, "b": None}, []),
        ({}, [("", "needs 'a'"), ("", "needs 'b'")]),
        ({"a": 0, "b": "x"}, [("/a", "must be at least 1"), ("/b", "must have at least 2 characters")]),
        ({"a": 4, "b": "xxxx"}, [("/a", "must be at most 3"), ("/b", "must have at most 3 characters")]),
        ({"a": "1", "b": 2}, [("/a", "must be an integer"), ("/b", "must be null or text")]),
        ({"a": 1, "b": None, "c": 2}, [("/c", 'must be one of "x", 1, None')]),
        ({"a": 1, "b": None, "d": []}, [("/d", "must have at least 1 items")]),
        ({"a": 1, "b": None, "d": [1, 2, "x"]}, [("/d", "must have at most 2 items"), ("/d/2", "must be a number")]),
        ({"a": 1, "b": None, "e": "y"}, [("/e", "does not match the pattern ^x+$")]),
        ({"a": 1, "b": None, "f": "y"}, [("/f", "is not a valid email")]),
        ({"a": 1, "b": None, "x/y": 1, "z": 2}, [("/x~1y", "is not known here"), ("/z", "is not known here")]),
    ],
)
def test_every_breach_in_words(value: JsonValue, found: list[tuple[str, str]]) -> None:
    assert sorted(compile_schema(OBJECT)(value)) == sorted(found)


def test_all_missing_fields_are_named() -> None:
    check = compile_schema(OBJECT)
    assert check.missing({"g": {}}) == ("/a", "/b", "/g/h", "/g/i")
    assert check.missing({"a": 1, "b": "xx"}) == ()


def test_values_are_not_quoted() -> None:
    (found,) = compile_schema({"not": {"type": "string"}})("hush")
    assert "hush" not in found[1]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/x"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "strng"},
        {"pattern": "("},
        {"pattern": "(?=a)b"},
        {"pattern": "(a)\\1"},
        {"$ref": "#/$defs/nowhere"},
        {"$schema": "https://example.test/own"},
    ],
)
def test_bad_schemas_raise_value_error(schema: JsonObject) -> None:
    with pytest.raises(ValueError):
        compile_schema(schema)


def test_a_nested_repeat_is_linear() -> None:
    assert compile_schema({"pattern": "^(a+)+$"})("a" * 50_000 + "b") == [("", "does not match the pattern ^(a+)+$")]
