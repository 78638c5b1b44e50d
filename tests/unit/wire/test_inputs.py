"""Inputs that come as text are read by their type."""

import pytest

from everstep.domain.values import JsonValue
from everstep.wire.inputs import BadTextError, parse_text_input


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("string", "3", "3"), ("string", "", ""), ("secret", "mail", "mail"),
        ("boolean", "true", True), ("boolean", "YES", True), ("boolean", "1", True),
        ("boolean", "False", False), ("boolean", "no", False), ("boolean", " 0 ", False),
        ("integer", "3", 3), ("integer", "-3", -3), ("number", "1.5", 1.5), ("number", "3", 3),
        ("number", "1e3", 1000.0),
        ("array", '["a", 1]', ["a", 1]), ("object", '{"a": {"b": null}}', {"a": {"b": None}}),
    ],
)  # fmt: skip
def test_texts(declared: str, text: str, value: JsonValue) -> None:
    result = parse_text_input({"type": declared}, text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("declared", "text", "message"),
    [
        ("boolean", "maybe", "must be true or false"),
        ("integer", "3.5", "must be an integer"),
        ("integer", "true", "must be an integer"),
        ("integer", "x", "must be an integer: not JSON"),
        ("number", '"3"', "must be a number"),
        ("array", "{}", "must be a JSON list"),
        ("object", "[1,]", "must be a JSON object: not JSON"),
        ("object", '{"a":1,"a":2}', 'must be a JSON object: the key "a" is given twice'),
    ],
)
def test_refusals(declared: str, text: str, message: str) -> None:
    with pytest.raises(BadTextError) as caught:
        parse_text_input({"type": declared}, text)
    assert str(caught.value).startswith(message)
