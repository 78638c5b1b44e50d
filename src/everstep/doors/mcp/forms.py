"""Questions of a task as forms that a client fills in, and what was filled in as an answer. Pure."""

import json
from collections.abc import Sequence
from typing import Any, Final

from everstep.domain.errors import Validation
from everstep.domain.pauses import InputRequired, Pause, PauseType, SchemaMismatch, UnresolvableParams
from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.mcp.handoff import compact, happened

_TEXT: Final[JsonObject] = {"type": "string"}
_FLAT: Final = frozenset({"string", "number", "integer", "boolean"})
_JSON_FIELDS: Final = {"output_json": "output", "arguments_json": "arguments", "value_json": "value"}


def form_of(pause: Pause, problem: str | None = None) -> JsonObject:
    """The request that asks a client; `problem`: what was wrong with its last answer."""
    properties: JsonObject = {"answer": {"type": "string", "enum": [*pause.answers]}, "note": _TEXT}
    properties |= _more(pause)
    message = happened(pause.reason)
    if pause.call is not None:
        message += f" {pause.call.tool} ({pause.call.effect}) with {compact(pause.call.input.value)}"
    if problem is not None:
        message = f"{message} The last answer was refused: {problem}"
    return form(message, properties, ["answer"])


def form(message: str, properties: JsonObject, required: Sequence[str] | None = None) -> JsonObject:
    """A request for these fields."""
    wanted: list[JsonValue] = [*(properties if required is None else required)]
    schema: JsonObject = {"type": "object", "properties": properties, "required": wanted}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message[:2000], "requestedSchema": schema},
    }


def _more(pause: Pause) -> JsonObject:
    reason = pause.reason
    match pause.type:
        case PauseType.APPROVAL_REQUIRED if pause.call is not None:
            sent = pause.call.input.value
            values = sent if isinstance(sent, dict) else {}
            return {name: _typed(values[name]) for name in pause.call.editable if name in values}
        case PauseType.INPUT_REQUIRED if isinstance(reason, InputRequired):
            return flat_schema(reason.schema) or {"value_json": _TEXT}
        case PauseType.TOOL_ERROR:
            return {"output_json": _TEXT, "arguments_json": _TEXT}
        case PauseType.UNCERTAIN_OUTCOME | PauseType.UNRESOLVED_DEPENDENCY:
            return {"output_json": _TEXT}
        case PauseType.UNRESOLVABLE_PARAMS if isinstance(reason, UnresolvableParams):
            return {reason.missing_param: _TEXT}
        case PauseType.SCHEMA_MISMATCH if isinstance(reason, SchemaMismatch):
            return dict.fromkeys(reason.missing_fields, _TEXT)
        case PauseType.LIMIT_REACHED:
            return {"max": {"type": "number"}}
        case _:
            return {}


def _typed(value: JsonValue) -> JsonObject:
    for kind, word in ((bool, "boolean"), (int, "integer"), (float, "number")):
        if isinstance(value, kind):
            return {"type": word}
    return _TEXT


def flat_schema(schema: JsonValue) -> JsonObject | None:
    """The fields of a question that a form can ask for; None if it cannot."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") in _FLAT:
        return {"value": schema}
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return None
    return dict(properties) if all(map(_is_field, properties.values())) else None


def _is_field(schema: JsonValue) -> bool:
    """A value of its own, or some of a list of choices."""
    if not isinstance(schema, dict):
        return False
    choices = schema.get("items") if schema.get("type") == "array" else None
    return schema.get("type") in _FLAT or (
        isinstance(choices, dict) and not choices.keys().isdisjoint({"enum", "anyOf"})
    )


def answer_of(pause: Pause, content: dict[str, Any]) -> JsonObject:
    """The body of the answer; raises Validation for what cannot be read."""
    said = {name: value for name, value in content.items() if value not in (None, "")}
    answer = said.pop("answer", None) or _meant(pause)
    if answer not in pause.answers:
        raise Validation(f"'answer' must be one of {', '.join(pause.answers)}", code="answer_invalid")
    body: JsonObject = {"answer": answer}
    if (note := said.pop("note", None)) is not None:
        body["note"] = str(note)
    for name, field in _JSON_FIELDS.items():
        if name in said:
            body[field] = _read(name, said.pop(name))
    if pause.call is not None and answer in ("approve", "edit", "reject"):
        body["digest"] = pause.call.input.digest
    if "max" in said:
        body["max"] = said.pop("max")
    if pause.type is PauseType.INPUT_REQUIRED and answer == "answer" and "value" not in body:
        body["value"] = said["value"] if [*said] == ["value"] else said
        return body
    return {**body, "arguments": said} if said else body


def _meant(pause: Pause) -> str:
    """What a form without a choice can only mean."""
    return "answer" if pause.type is PauseType.INPUT_REQUIRED else pause.answers[0]


def _read(name: str, text: object) -> JsonValue:
    try:
        value: JsonValue = json.loads(str(text))
    except ValueError:
        raise Validation(f"'{name}' is no JSON", code="answer_invalid") from None
    return value
