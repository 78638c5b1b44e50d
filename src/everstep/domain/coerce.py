"""Arguments written in another JSON type than the tool takes, where nothing is lost: `"3"` for 3, `7` for `"7"`.

Only what reads back as it was written is changed; everything else is left for the schema to refuse.
"""

import re
from typing import Final

from everstep.domain.pointer import child
from everstep.domain.values import INTEGER_MAX, JsonObject, JsonValue

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,15})")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,11})\.[0-9]{0,11}[1-9]")
_TRUTH: Final = {"true": True, "false": False}


def coerce(schema: JsonValue, value: JsonValue, pointer: str = "") -> tuple[JsonValue, tuple[str, ...]]:
    """The value as the schema wants it, and the places that were changed."""
    if not isinstance(schema, dict):
        return value, ()
    if isinstance(value, dict):
        return _object(schema, value, pointer)
    if isinstance(value, list):
        done = [coerce(schema.get("items"), item, child(pointer, at)) for at, item in enumerate(value)]
        return [item for item, _ in done], tuple(place for _, places in done for place in places)
    wanted = schema.get("type")
    if not isinstance(wanted, str):  # a choice of types is the author's wish to tell them apart
        return value, ()
    changed = _scalar(wanted, value)
    return (value, ()) if changed is None else (changed, (pointer,))


def _object(schema: JsonObject, value: JsonObject, pointer: str) -> tuple[JsonValue, tuple[str, ...]]:
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return value, ()
    done = {name: coerce(fields.get(name), item, child(pointer, name)) for name, item in value.items()}
    places = tuple(place for _, places in done.values() for place in places)
    return ({name: item for name, (item, _) in done.items()}, places) if places else (value, ())


def _scalar(wanted: str, value: JsonValue) -> JsonValue:
    """None: nothing to change, or not without loss."""
    if isinstance(value, str):
        if wanted in {"integer", "number"} and _INTEGER.fullmatch(value) and value != "-0":
            number = int(value)
            return number if abs(number) <= INTEGER_MAX else None
        if wanted == "number" and _NUMBER.fullmatch(value):
            return float(value)
        return _TRUTH.get(value) if wanted == "boolean" else None
    if wanted == "string" and type(value) is int:
        return str(value)
    return None
