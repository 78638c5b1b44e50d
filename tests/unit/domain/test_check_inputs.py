"""Schemas that a plan may declare for its inputs."""

import pytest

from everstep.domain.values import JsonObject
from tests.unit.known_tools import check, plan, step


def found_in(schema: JsonObject) -> list[tuple[str, str]]:
    value = plan(step("a", with_={"query": "${json(inputs)}"}), inputs={"x": schema})
    return [(problem.path.removeprefix("/inputs/x"), problem.message) for problem in check(value)]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^a+$", "default": "aa"},
        {"type": "object", "properties": {"$ref": {"type": "string"}, "anyOf": {"type": "null"}}},
        {"type": "array", "items": {"type": "integer"}, "default": [1]},
        {"type": "object", "default": {"$ref": "x", "not": [{"if": 1}]}, "examples": [{"$ref": 1}]},
        {"type": "secret"},
    ],
)
def test_good_schemas(schema: JsonObject) -> None:
    assert found_in(schema) == []


@pytest.mark.parametrize(
    ("schema", "path", "message"),
    [
        ({"type": "string", "$ref": "#/x"}, "/$ref", "an input takes no '$ref'"),
        ({"type": "object", "properties": {"a": {"oneOf": []}}}, "/properties/a/oneOf", "an input takes no 'oneOf'"),
        ({"type": "array", "items": [{"not": {}}]}, "/items/0/not", "an input takes no 'not'"),
        ({"type": "string", "pattern": "a" * 257}, "/pattern", "a pattern has at most 256 characters"),
        ({"type": "integer", "default": 1.5}, "/default", "the default of 'x' must be an integer"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "default": {"a": 1}},
            "/default/a",
            "the default of 'x' must be text",
        ),
    ],
)
def test_bad_schemas(schema: JsonObject, path: str, message: str) -> None:
    assert found_in(schema) == [(path, message)]


@pytest.mark.parametrize("schema", [{"type": "string", "pattern": "("}, {"type": "string", "minLength": "x"}])
def test_schemas_that_are_none(schema: JsonObject) -> None:
    ((path, message),) = found_in(schema)
    assert path == ""
    assert message.startswith("this is not a schema: ")
