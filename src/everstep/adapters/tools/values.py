"""`json.*`: read, pick, merge and check JSON values; pure and strict."""

from typing import Final

from everstep.adapters.tools.family import Small, SmallTools, closed, spec_of
from everstep.domain.pointer import keys
from everstep.domain.values import JsonObject, JsonValue, NotJson
from everstep.ports.codec import Codec
from everstep.ports.tool import Misconfigured
from everstep.wire.values import loads_strict

_VALUE: Final[JsonObject] = closed({"value": {}})
_ABSENT: Final = object()


def json_tools(codec: Codec) -> SmallTools:
    """The family."""

    def validate(value: JsonValue, schema: JsonObject) -> JsonValue:
        try:
            check = codec.validator(schema)
        except ValueError as exc:
            raise Misconfigured(f"the schema is not a JSON Schema: {exc}", code="bad_argument") from exc
        problems: list[JsonValue] = [{"path": path, "message": message} for path, message in sorted(check(value))]
        return {"valid": not problems, "problems": problems}

    return SmallTools((*_TOOLS, Small(spec=_VALIDATE, does=validate)))


def _parse(text: str) -> JsonValue:
    try:
        return {"value": loads_strict(text)}
    except NotJson as exc:
        raise Misconfigured(f"the text cannot be read: {exc}", code="bad_argument") from exc


def _pick(value: JsonValue, pointer: str, default: JsonValue | object = _ABSENT) -> JsonValue:
    if pointer and not pointer.startswith("/"):
        raise Misconfigured(f"'{pointer}' is not a JSON Pointer: it begins with /", code="bad_argument")
    found: JsonValue | object = value
    for key in keys(pointer):
        found = _child(found, key)
    found = default if found is _ABSENT else found
    if found is _ABSENT:
        raise Misconfigured(f"there is nothing at '{pointer}'", code="bad_argument")
    return {"value": found}  # type: ignore[dict-item]  # no longer the mark for absence


def _child(value: JsonValue | object, key: str) -> JsonValue | object:
    if isinstance(value, dict):
        return value.get(key, _ABSENT)
    if isinstance(value, list) and key.isascii() and key.isdecimal() and (key == "0" or key[0] != "0"):
        at = int(key[:9])
        return value[at] if at < len(value) else _ABSENT
    return _ABSENT


def _merge(target: JsonValue, patch: JsonValue) -> JsonValue:
    return {"value": merged(target, patch)}


def merged(target: JsonValue, patch: JsonValue) -> JsonValue:
    """RFC 7396: objects are merged field by field, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


_TOOLS: Final = (
    Small(
        spec=spec_of(
            "json.parse",
            "Read JSON",
            "Read a text as strict JSON: no repeated keys, no NaN, nothing after the value.",
            takes={"text": {"type": "string", "description": "The text to read"}},
            needs=("text",),
            gives=_VALUE,
        ),
        does=_parse,
    ),
    Small(
        spec=spec_of(
            "json.pick",
            "Pick from JSON",
            "One value out of another, by JSON Pointer.",
            takes={
                "value": {"description": "Where to look"},
                "pointer": {"type": "string", "description": "JSON Pointer (RFC 6901), such as /items/0/id"},
                "default": {"description": "The answer where nothing is found; without it that is an error"},
            },
            needs=("value", "pointer"),
            gives=_VALUE,
        ),
        does=_pick,
    ),
    Small(
        spec=spec_of(
            "json.merge",
            "Merge JSON",
            "Merge a patch into a value (RFC 7396): fields are replaced, and removed where the patch says null.",
            takes={"target": {"description": "The value to change"}, "patch": {"description": "What to change"}},
            needs=("target", "patch"),
            gives=_VALUE,
        ),
        does=_merge,
    ),
)
_VALIDATE: Final = spec_of(
    "json.validate",
    "Check JSON",
    "Check a value against a JSON Schema and list every problem.",
    takes={
        "value": {"description": "The value to check"},
        "schema": {"type": "object", "description": "JSON Schema 2020-12, without references to other documents"},
    },
    needs=("value", "schema"),
    gives=closed(
        {
            "valid": {"type": "boolean"},
            "problems": {"type": "array", "items": closed({"path": {"type": "string"}, "message": {"type": "string"}})},
        }
    ),
)
