"""Values that fit: what a stand-in returns for a tool that is not called.

By the tool's own schema where it has one, else by what the plan goes on to read of it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any] | None

TEXT: Final = "x"
_REFERENCE: Final = re.compile(r"\b([a-z][a-z0-9_-]*)((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_PART: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")
_BY_TYPE: Final[Mapping[str, Any]] = {
    "string": TEXT, "integer": 1, "number": 1.5, "boolean": True, "null": None, "array": [], "object": {},
}  # fmt: skip
_BY_FORMAT: Final = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "email": "someone@example.test",
    "uri": "https://example.test/",
    "url": "https://example.test/",
}
DEPTH_MAX: Final = 12


def shaped(schema: Schema, depth: int = 0) -> Any:  # noqa: ANN401 -- any JSON
    """The plainest value that a schema takes."""
    if not schema or depth > DEPTH_MAX:
        return {}
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if schema.get("enum") or schema.get("examples"):
        return (schema.get("enum") or schema["examples"])[0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return shaped(schema[word][0], depth + 1)
    said = schema.get("type", "object" if "properties" in schema else None)
    kind = said[0] if isinstance(said, list) else said
    if kind == "object":
        return {name: shaped(one, depth + 1) for name, one in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [shaped(schema.get("items"), depth + 1)] * max(1, min(2, schema.get("maxItems", 2)))
    if kind == "string":
        return _BY_FORMAT.get(schema.get("format", ""), TEXT * max(1, schema.get("minLength", 1)))
    if kind in {"integer", "number"}:
        return schema.get("minimum", _BY_TYPE[kind])
    return _BY_TYPE.get(str(kind), {})


def read_of(texts: Iterable[str], step: str) -> list[tuple[str | int, ...]]:
    """Which parts of a step's output a plan reads."""
    found = [match for text in texts for match in _REFERENCE.finditer(text) if match[1] == step]
    return [tuple(name or int(index) for name, index in _PART.findall(match[2])) for match in found]


def with_parts(schema: Schema, parts: Iterable[Sequence[str | int]]) -> Any:  # noqa: ANN401 -- any JSON
    """The plainest value, with everything in it that somebody reads."""
    value = shaped(schema)
    for part in parts:
        value = _with(value, part, schema)
    return value


def _with(value: Any, part: Sequence[str | int], schema: Schema) -> Any:  # noqa: ANN401 -- any JSON
    if not part:
        return value if value not in ({}, None) else shaped(schema) or TEXT
    name, rest, inner = part[0], part[1:], _inner(schema, part[0])
    if isinstance(name, int):
        items = [*value] if isinstance(value, list) else []
        items += [{}] * (name + 1 - len(items))
        items[name] = _with(items[name], rest, inner)
        return items
    fields = dict(value) if isinstance(value, dict) else {}
    fields[name] = _with(fields.get(name, {}), rest, inner)
    return fields


def _inner(schema: Schema, name: str | int) -> Schema:
    if not schema:
        return None
    if isinstance(name, int):
        found = schema.get("items")
    else:
        found = (schema.get("properties") or {}).get(name, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def texts_of(plan: Any) -> list[str]:  # noqa: ANN401 -- any JSON
    """Every text of a plan in which something may be read."""
    if isinstance(plan, str):
        return re.findall(r"\$\{([^}]*)\}", plan)
    inner = plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ()
    return [text for one in inner for text in texts_of(one)]
