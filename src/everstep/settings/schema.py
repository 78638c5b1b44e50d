"""The JSON Schema of `everstep.toml`, for editors: draft-07, which is what TOML language servers read.

Made from the table of keys. It may allow more than the settings do, never less: they decide.
"""

from typing import Final

from everstep.domain.values import JsonObject, JsonValue
from everstep.settings.keys import FAMILIES, KEYS
from everstep.settings.kinds import SCOPE, Key

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_NUMBERS: Final = ("integer", "number")


def settings_schema() -> JsonObject:
    """The schema of the whole file."""
    root: JsonObject = {"$schema": DRAFT, "title": "Everstep settings", **_table()}
    definitions: JsonObject = {}
    for key in KEYS:
        _put(root, key.name, _of(key, usual=True))
    for family, key in FAMILIES.items():
        if "*" in family:
            _put(root, family, _of(key, usual=False))
        else:
            definitions[family] = _named(family, key)
            _put(root, family, {"type": "object", "additionalProperties": {"$ref": f"#/definitions/{family}"}})
    return {**root, "definitions": definitions}


def _of(key: Key, *, usual: bool) -> JsonObject:
    """One key; a family has no default of its own."""
    said: JsonObject = {"description": key.meaning, **key.kind.schema}
    if key.kind.schema.get("type") in _NUMBERS:
        said |= {"minimum": key.kind.show(key.least), "maximum": key.kind.show(key.most)}
    return {**said, "default": key.default} if usual and key.default is not None else said


def _named(family: str, key: Key) -> JsonObject:
    """Whatever stands below the name of the operator's own; names with dots in them become tables."""
    inner: JsonObject = {"type": "object", "additionalProperties": {"$ref": f"#/definitions/{family}"}}
    plain = {word: said for word, said in _of(key, usual=False).items() if word != "description"}
    if family == "pools":
        inner["properties"] = {"size": plain, "scope": SCOPE.schema}
    return {"description": key.meaning, "anyOf": [plain, inner]}


def _table() -> JsonObject:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _put(root: JsonObject, name: str, schema: JsonObject) -> None:
    """`http.targets.*.url`: two tables, any name, and in its table `url`."""
    at, *words = root, *name.split(".")
    for word in words[:-1]:
        at = _inner(at, word)
    place, word = _place(at, words[-1])
    there = place.get(word)
    place[word] = {**schema, **there} if isinstance(there, dict) else schema


def _inner(table: JsonObject, word: str) -> JsonObject:
    place, name = _place(table, word)
    found = place.get(name)
    if not isinstance(found, dict):
        found = _table()
    found.setdefault("properties", {})
    found.setdefault("additionalProperties", False)
    place[name] = found
    return found


def _place(table: JsonObject, word: str) -> tuple[JsonObject, str]:
    """Where the schema of a word of a key belongs."""
    if word == "*":
        return table, "additionalProperties"
    properties: JsonValue = table["properties"]
    assert isinstance(properties, dict), "a table describes its keys"
    return properties, word
