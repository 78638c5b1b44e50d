"""The JSON Schema of plan files, for editors: draft-07, which is what YAML language servers read.

Made from the key table, so it knows every key the checker knows. It may allow more than the checker, never less: the
checker decides. With tools it also completes their names and arguments.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.keys import FALLBACK, PLAN, STEP, UNDO

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_BINDING: Final[JsonObject] = {"type": "string", "pattern": "\\$\\{"}


def plan_schema(tools: Mapping[str, JsonObject] | None = None) -> JsonObject:
    """The schema of a plan; `tools` maps names to schemas of their arguments."""
    plan = PLAN.schema()
    properties = plan["properties"]
    assert isinstance(properties, dict), "a table describes its keys"
    calls = _calls(tools or {})
    step: JsonObject = {**STEP.schema(), **calls}
    step_properties = step["properties"]
    assert isinstance(step_properties, dict), "a table describes its keys"
    parts: JsonObject = {"fallback": {**FALLBACK.schema(), **calls}, "undo": {**UNDO.schema(), **calls}}
    step["properties"] = {
        **step_properties,
        "fallback": _like(step_properties["fallback"], items={"$ref": "#/definitions/fallback"}),
        "undo": {"anyOf": [{"$ref": "#/definitions/undo"}, {"type": "null"}]},
    }
    steps: JsonObject = {"items": {"$ref": "#/definitions/step"}}
    return {
        "$schema": DRAFT,
        "title": "Everstep plan",
        **plan,
        "properties": {
            **properties,
            "steps": _like(properties["steps"], **steps),
            "finally": _like(properties["finally"], **steps),
        },
        "definitions": {"step": step, **parts, **_arguments(tools or {})},
    }


def _like(schema: JsonValue, **changes: JsonValue) -> JsonObject:
    assert isinstance(schema, dict), "a key is described by an object"
    return {**schema, **changes}


def _calls(tools: Mapping[str, JsonObject]) -> JsonObject:
    """For each tool: if it is this one, the arguments look like that."""
    if not tools:
        return {}
    rules: list[JsonValue] = [{"properties": {"tool": {"enum": [*sorted(tools), None]}}}]
    rules += [
        {
            "if": {"properties": {"tool": {"const": name}}, "required": ["tool"]},
            "then": {"properties": {"with": {"anyOf": [{"$ref": f"#/definitions/{name}"}, {"type": "null"}]}}},
        }
        for name in sorted(tools)
    ]
    return {"allOf": rules}


def _arguments(tools: Mapping[str, JsonObject]) -> JsonObject:
    """Schemas of arguments by tool; names of tools hold nothing that a JSON Pointer would have to escape."""
    return {name: _at_home(downgraded(schema), f"#/definitions/{name}") for name, schema in sorted(tools.items())}


def _at_home(schema: JsonValue, home: str) -> JsonValue:
    """References inside a schema, now that it stands in another document."""
    if isinstance(schema, list):
        return [_at_home(item, home) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        word: home + value[1:] if word == "$ref" and isinstance(value, str) else _at_home(value, home)
        for word, value in schema.items()
    }


_RENAMED: Final = {"$defs": "definitions", "dependentRequired": "dependencies", "dependentSchemas": "dependencies"}
_DROPPED: Final = frozenset({
    "$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "unevaluatedProperties", "unevaluatedItems",
    "minContains", "maxContains", "x-everstep-kind",
})  # fmt: skip
_SCHEMA_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf"})
_SCHEMAS: Final = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})


def downgraded(schema: JsonObject) -> JsonObject:
    """A 2020-12 schema of arguments as draft-07, where any part may also be a binding."""
    written: JsonObject = {}
    for word, value in schema.items():
        if word in _DROPPED or word == "prefixItems":
            continue
        name = _RENAMED.get(word, word)
        if word == "$ref" and isinstance(value, str):
            written[name] = value.replace("#/$defs/", "#/definitions/")
        elif word in _SCHEMA_MAPS and isinstance(value, dict):
            written[name] = {key: _or_bound(inner) for key, inner in value.items()}
        elif word in _SCHEMA_LISTS and isinstance(value, list):
            written[name] = [_or_bound(inner) for inner in value]
        elif word in _SCHEMAS and isinstance(value, dict):
            written[name] = _or_bound(value)
        else:
            written[name] = value
    return _with_first_items(schema, written)


def _with_first_items(schema: JsonObject, written: JsonObject) -> JsonObject:
    """`prefixItems` and `items` were `items` and `additionalItems`."""
    if isinstance(firsts := schema.get("prefixItems"), list):
        if "items" in written:
            written["additionalItems"] = written["items"]
        written["items"] = [_or_bound(first) for first in firsts]
    return written


def _or_bound(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, dict) or not schema:
        return schema
    inner = downgraded(schema)
    described: JsonObject = {key: inner[key] for key in _words(inner, "description", "title")}
    return {**described, "anyOf": [inner, _BINDING]}


def _words(schema: JsonObject, *words: str) -> Iterable[str]:
    return [word for word in words if word in schema]
