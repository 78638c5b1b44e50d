"""Inputs that come as text (`-i topic=solar`, arguments of MCP prompts), read by their declared type."""

from collections.abc import Callable
from typing import Final

from everstep.domain.values import JsonObject, JsonValue, NotJson
from everstep.wire.values import loads_strict

_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class BadTextError(ValueError):
    """A text that is not a value of its type; the message says what is."""


def parse_text_input(schema: JsonObject, text: str) -> JsonValue:
    """The value of one input; raises BadTextError. Whether it fits the rest of its schema is checked later."""
    declared = schema.get("type")
    parse = _PARSERS.get(declared) if isinstance(declared, str) else None
    return parse(text) if parse else text


def _boolean(text: str) -> JsonValue:
    if text.strip().lower() not in _BOOLEANS:
        raise BadTextError("must be true or false")
    return _BOOLEANS[text.strip().lower()]


def _json(text: str, wanted: Callable[[JsonValue], bool], noun: str) -> JsonValue:
    try:
        value = loads_strict(text.strip())
    except NotJson as error:
        raise BadTextError(f"must be {noun}: {error.reason}") from None
    if not wanted(value):
        raise BadTextError(f"must be {noun}")
    return value


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_PARSERS: Final[dict[str, Callable[[str], JsonValue]]] = {
    "boolean": _boolean,
    "integer": lambda text: _json(text, _is_whole, "an integer"),
    "number": lambda text: _json(text, _is_number, "a number"),
    "array": lambda text: _json(text, lambda value: isinstance(value, list), "a JSON list"),
    "object": lambda text: _json(text, lambda value: isinstance(value, dict), "a JSON object"),
}
"""Types that are not text; `string` and `secret` are taken as they come."""
