"""What a JSON Schema says about the inside of a value, as far as a reference needs it.

Schemas are read generously: what they leave open is open. A list of `properties` counts as complete unless the schema
says that there is more, because that is how people write them.
"""

from typing import Final, TypeAlias

from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue

_HOPS_MAX: Final = 32
ANYTHING: Final[JsonObject] = {}
_COMBINED: Final = ("anyOf", "oneOf", "allOf")
_INDIRECT: Final = frozenset({"$ref", *_COMBINED})


@record
class Described:
    """There is such a field, and this is its schema."""

    schema: JsonObject


@record
class NoField:
    """There is none; these are there."""

    names: tuple[str, ...] = ()


Field: TypeAlias = Described | NoField


def field(schema: JsonObject, key: str | int, whole: JsonObject) -> Field:
    """What `key` leads to. `whole` is the document, for references inside it."""
    branches = [_step(branch, key) for branch in _branches(schema, whole)]
    for found in branches:
        if isinstance(found, Described):
            return found
    names = {name: None for found in branches if isinstance(found, NoField) for name in found.names}
    return NoField(names=tuple(names))


def types(schema: JsonObject, whole: JsonObject) -> frozenset[str] | None:
    """Which JSON types a value can have; None if that is not said."""
    found: set[str] = set()
    for branch in _branches(schema, whole):
        said = _types(branch)
        if said is None:
            return None
        found |= said
    return frozenset(found) or None


def type_of(value: JsonValue) -> str:
    """The JSON type of a value."""
    return _TYPE_NAMES[type(value)]


_TYPE_NAMES: Final = {
    type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def _branches(schema: JsonObject, whole: JsonObject) -> list[JsonObject]:
    """The alternatives of a schema, with references inside the document followed."""
    if not _INDIRECT & schema.keys():
        return [schema]
    found: list[JsonObject] = []
    pending = [schema]
    for _ in range(_HOPS_MAX):
        if not pending:
            return found
        branch = pending.pop()
        target = _target(branch, whole)
        alternatives = [option for word in _COMBINED for option in _list(branch.get(word)) if isinstance(option, dict)]
        if target is not None:
            pending.append(target)
        elif alternatives and "properties" not in branch:
            pending += alternatives
        else:
            found.append(branch)
    return [ANYTHING]


def _target(schema: JsonObject, whole: JsonObject) -> JsonObject | None:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return None
    target: JsonValue = whole
    for key in reference.removeprefix("#").split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 -- the same key, unescaped
        target = target.get(key) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else ANYTHING


def _step(schema: JsonObject, key: str | int) -> Field:
    said = _types(schema)
    if said is not None and ("object" if isinstance(key, str) else "array") not in said:
        return NoField()
    return _property(schema, key) if isinstance(key, str) else _item(schema, key)


def _property(schema: JsonObject, key: str) -> Field:
    properties = schema.get("properties")
    more = schema.get("additionalProperties")
    if isinstance(properties, dict) and key in properties:
        return _schema(properties[key])
    if isinstance(more, dict):
        return Described(schema=more)
    if more is True or "patternProperties" in schema or (not isinstance(properties, dict) and more is not False):
        return Described(schema=ANYTHING)
    return NoField(names=tuple(properties) if isinstance(properties, dict) else ())


def _item(schema: JsonObject, at: int) -> Field:
    firsts = _list(schema.get("prefixItems"))
    if 0 <= at < len(firsts):
        return _schema(firsts[at])
    return _schema(schema.get("items") if at >= 0 or not firsts else None)


def _schema(value: JsonValue) -> Described:
    return Described(schema=value if isinstance(value, dict) else ANYTHING)


def _types(schema: JsonObject) -> set[str] | None:
    said = schema.get("type")
    if isinstance(said, str):
        return {said}
    if isinstance(said, list):
        return {str(name) for name in said}
    if "const" in schema:
        return {type_of(schema["const"])}
    if isinstance(options := schema.get("enum"), list):
        return {type_of(option) for option in options}
    return {"object"} if "properties" in schema else None


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
