"""What the tools of `llm.*` take and give."""

from collections.abc import Sequence
from typing import Final

from everstep.adapters.tools.family import closed
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolSpec

CHAT: Final = "llm.chat"
JSON: Final = "llm.json"
STEP_MS: Final = Millis(600_000)
_MESSAGE: Final[JsonObject] = {
    "type": "object",
    "properties": {"role": {"enum": ["system", "user", "assistant", "developer"]}, "content": {"type": "string"}},
    "required": ["role", "content"],
    "additionalProperties": False,
}
_TAKES: Final[JsonObject] = {
    "prompt": {"type": "string", "minLength": 1, "description": "What to ask"},
    "messages": {"type": "array", "items": _MESSAGE, "minItems": 1, "description": "A conversation instead"},
    "system": {"type": "string", "description": "How the model is to answer"},
    "endpoint": {"type": "string", "x-everstep-kind": "literal", "description": "Its name in the configuration"},
    "model": {"type": "string", "minLength": 1, "description": "Another model than the endpoint's own"},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "max_tokens": {"type": "integer", "minimum": 1},
    "stop": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 4}]},
}
_SCHEMA: Final[JsonObject] = {"type": "object", "description": "JSON Schema of the answer"}
_USAGE: Final[JsonObject] = {
    "anyOf": [
        {"type": "null"},
        closed({"tokens_in": {"type": "integer"}, "tokens_out": {"type": "integer"}, "cost": {"type": "number"}}),
    ]
}
_MODEL: Final[JsonObject] = {"model": {"type": "string"}, "usage": _USAGE}


def specs(timeout_s: float) -> Sequence[ToolSpec]:
    """Both."""
    finish: JsonObject = {"type": ["string", "null"]}
    return (
        _spec(CHAT, "Ask a model", "Ask a language model, and get its text.", timeout_s=timeout_s, takes=_TAKES,
              gives={"text": {"type": "string"}, "finish_reason": finish, **_MODEL}),
        _spec(JSON, "Ask a model for JSON", "Ask a language model for JSON that fits a schema; it is checked here.",
              timeout_s=timeout_s, takes={**_TAKES, "schema": _SCHEMA}, gives={"value": {}, **_MODEL}),
    )  # fmt: skip


def _spec(
    name: str, title: str, description: str, *, timeout_s: float, takes: JsonObject, gives: JsonObject
) -> ToolSpec:
    arguments: JsonObject = {}
    for argument, schema in takes.items():
        assert isinstance(schema, dict)
        arguments[argument] = {"x-everstep-kind": "opaque", **schema}
    return ToolSpec(
        name=name,
        version="1.0.0",
        title=title,
        description=description,
        input_schema=closed(arguments, ("schema",) if name == JSON else ()),
        output_schema=closed(gives),
        effect=Effect.PURE,
        timeout_ms=Millis(round(timeout_s * 1000)),
        step_timeout_ms=STEP_MS,
        pool="llm",
        rate="llm.*",
        permissions=("net.http",),
    )
