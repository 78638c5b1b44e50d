"""`plan fmt`: the same plan, in the order of the key table, with short forms and no needless quotes.

What is written reads back as the same normal form, so formatting never changes a digest, and formatting twice
changes nothing. Comments are not part of a plan; who formats must ask first (`has_comments`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from everstep.domain.canonical import number_text
from everstep.domain.plan import PlanSpec
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.normal import to_json
from everstep.wire.yamltext import BadNumberError, resolved

_SHORT_FORMS: Final = {"retry": "times", "approve": "title"}
"""Keys whose value may stand for a map with only this key."""


def format_json(plan: PlanSpec) -> str:
    """A JSON file."""
    text = json.dumps(_shortened(plan), indent=2, ensure_ascii=False, allow_nan=False)
    return re.sub(r"[\x7f-\x9f\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def format_yaml(plan: PlanSpec) -> str:
    """A YAML file: two spaces, block style."""
    return "".join(f"{line}\n" for line in _map_lines(_shortened(plan), ""))


# --- short forms ----------------------------------------------------------------------------------------------------


def _shortened(plan: PlanSpec) -> JsonObject:
    written = to_json(plan)
    for key in ("steps", "finally"):
        if isinstance(steps := written.get(key), list):
            written[key] = [_short_step(step) for step in steps]
    if isinstance(inputs := written.get("inputs"), dict):
        written["inputs"] = {name: _short(schema, "type") for name, schema in inputs.items()}
    if "defaults" in written:
        written["defaults"] = _short_keys(written["defaults"])
    return written


def _short_step(value: JsonValue) -> JsonValue:
    step = _short_keys(value)
    if isinstance(others := step.get("fallback"), list):
        step["fallback"] = [_short_keys(other) for other in others]
    if "undo" in step:
        step["undo"] = _short_keys(step["undo"])
    if isinstance(resources := step.get("resources"), list):
        step["resources"] = [_short(resource, "uri") for resource in resources]
    return step


def _short_keys(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict), "the normal form has maps here"
    return {key: _short(item, _SHORT_FORMS[key]) if key in _SHORT_FORMS else item for key, item in value.items()}


def _short(value: JsonValue, only: str) -> JsonValue:
    return value[only] if isinstance(value, dict) and [*value] == [only] else value


# --- YAML -----------------------------------------------------------------------------------------------------------

_KEY_CHARS_MAX: Final = 1_000
"""A longer key must be announced with `?`."""


def _map_lines(value: Mapping[str, JsonValue], indent: str) -> Iterator[str]:
    for key, item in value.items():
        name = _text(key)
        if len(name) > _KEY_CHARS_MAX:
            yield f"{indent}? {name}"
            yield from _with_head(f"{indent}:", item, indent)
        else:
            yield from _with_head(f"{indent}{name}:", item, indent)


def _with_head(head: str, value: JsonValue, indent: str) -> Iterator[str]:
    """A value behind its key or dash: on the same line, or below it."""
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        yield head
        yield from _map_lines(value, inner)
    elif isinstance(value, list) and value:
        yield head
        yield from _list_lines(value, inner)
    elif isinstance(value, str) and _fits_block(value):
        yield f"{head} |{'' if value.endswith(chr(10)) else '-'}"
        yield from (f"{inner}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _list_lines(items: Iterable[JsonValue], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict | list) and item:
            inner = f"{indent}  "
            lines = _map_lines(item, inner) if isinstance(item, dict) else _list_lines(item, inner)
            first = next(lines)
            yield f"{indent}- {first.removeprefix(inner)}"
            yield from lines
        else:
            yield from _with_head(f"{indent}-", item, indent)


def _scalar(value: JsonValue) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return number_text(value)
    return str(value) if isinstance(value, int) else ("{}" if isinstance(value, dict) else "[]")


_PLAIN: Final = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[\-?:](?=[^\s]))(?:[^:#]|:(?=[^\s])|(?<=[^\s])#)*")
_OTHERWISE: Final = re.compile(
    r"<<|=|---.*|\.\.\..*|y|n|yes|no|on|off|[-+]?[0-9][0-9_,:.eE+-]*(?:[Tt ][0-9:.]*[Zz]?)?", re.IGNORECASE
)
"""Texts that other readers of YAML take for something else."""


def _text(text: str) -> str:
    plain = (
        _PLAIN.fullmatch(text) is not None
        and text.isprintable()
        and not text.endswith(" ")
        and _OTHERWISE.fullmatch(text) is None
        and _is_text(text)
    )
    return text if plain else f'"{"".join(map(_escaped, text))}"'


def _is_text(text: str) -> bool:
    try:
        return isinstance(resolved(text), str)
    except BadNumberError:
        return False


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _fits_block(text: str) -> bool:
    """Whether a text can stand below its key, line by line, exactly as it is."""
    if "\n" not in text.strip("\n") or text.endswith("\n\n"):
        return False
    lines = text.removesuffix("\n").split("\n")
    first = next(line for line in lines if line)
    return not first.startswith(" ") and all(line.isprintable() and not line.endswith(" ") for line in lines)
