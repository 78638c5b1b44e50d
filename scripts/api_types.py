"""The objects of the API as TypeScript, from the same document that `/v1/openapi.json` answers with.

What the document leaves open (`object`, `unknown`) the dashboard's `data/api.ts` says more exactly, by extending these.
"""

import json
from typing import Final

from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.api.shapes import OBJECTS

HEAD: Final = (
    "// Written by scripts/write_docs.py from the API's own description: do not edit. Servers may add fields.\n"
)
PLAIN: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def types_page() -> str:
    """Every object that has a name."""
    return "\n".join([HEAD, *(f"export interface {name} {written(schema)}\n" for name, schema in OBJECTS.items())])


def written(schema: JsonValue, depth: int = 0) -> str:
    """One schema as a type."""
    assert isinstance(schema, dict)
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(word) for word in _list(schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(written(one, depth) for one in _list(schema["anyOf"]))
    if schema.get("type") == "array":
        return f"({written(schema['items'], depth)})[]"
    if "properties" in schema:
        return _fields(schema, depth)
    kind = schema.get("type")
    return "object" if kind == "object" else PLAIN.get(str(kind), "unknown")


def _fields(schema: JsonObject, depth: int) -> str:
    fields, needed = schema["properties"], schema.get("required", [])
    assert isinstance(fields, dict)
    edge = "  " * (depth + 1)
    lines = [
        f"{edge}{name}{'' if name in _list(needed) else '?'}: {written(one, depth + 1)};"
        for name, one in fields.items()
    ]
    return "\n".join(["{", *lines, f"{'  ' * depth}}}"])


def _list(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list)
    return value
