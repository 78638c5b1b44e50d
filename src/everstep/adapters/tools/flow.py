"""`wait` and `ask`: steps that end later, by the clock or by an answer. Neither holds anything while it waits."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from everstep.adapters.tools.family import QUICK, spec_of
from everstep.domain.ids import Instant
from everstep.domain.quantities import parse_duration
from everstep.domain.signal import NAME
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.codec import Codec
from everstep.ports.tool import Call, Ctx, Deferred, Listening, NeedsInput, Prior, ToolSpec
from everstep.wire.times import to_text

TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")
"""What `schema` may say in one word."""

_WAIT: Final = spec_of(
    "wait",
    "Wait",
    "Wait for a length of time, until an instant, or for a signal. The wait is stored: it survives restarts and holds"
    " nothing.",
    takes={
        "for": {"type": "string", "description": "How long: 500ms, 30s, 1h30m, 2d"},
        "until": {"type": "string", "format": "date-time", "description": "Until when: 2026-01-31T12:00:00Z"},
        "event": {"type": "string", "pattern": f"^{NAME.pattern}$", "description": "The signal to wait for"},
        "key": {"type": "string", "pattern": f"^{NAME.pattern}$", "description": "Its key; else the task's id"},
        "timeout": {"type": "string", "description": "How long to wait for the signal; else for ever"},
    },
    needs=(),
    gives={
        "type": "object",
        "properties": {
            "until": {"type": "string", "format": "date-time", "description": "After a wait by the clock"},
            "event": {"type": "string"},
            "key": {"type": ["string", "null"]},
            "data": {"description": "What came with the signal"},
            "at": {"type": "string", "format": "date-time"},
        },
        "additionalProperties": False,
    },
    trusted_output=True,
)
_ASK: Final = spec_of(
    "ask",
    "Ask",
    "Ask whoever watches the task, and go on with the answer.",
    takes={
        "question": {"type": "string", "minLength": 1, "description": "What to ask"},
        "schema": {
            "anyOf": [{"enum": list(TYPES)}, {"type": "object"}],
            "default": "string",
            "description": "What the answer must be: one of these words, or a JSON Schema",
        },
        "by": {"enum": ["human", "llm", "anyone"], "default": "anyone", "description": "Who may answer"},
    },
    needs=("question",),
    gives=None,
)


class FlowTools(ToolAdapter):
    """Waiting and asking."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def tools(self) -> Sequence[ToolSpec]:
        """Both."""
        return (_WAIT, _ASK)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A length or instant that can be read; a schema that is one."""
        return _wait_problems(call.arguments) if call.tool == _WAIT.name else self._ask_problems(call.arguments)

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred | Listening:
        """Say until when or for what, or take the answer; without one, ask."""
        if call.tool == _WAIT.name and "event" in call.arguments:
            return _listening(call.arguments, ctx.now())
        if call.tool == _WAIT.name:
            until = _due(call.arguments, ctx.now())
            return Deferred(until=until, output={"until": to_text(until)})
        question, schema = str(call.arguments["question"]), _answer_schema(call.arguments)
        by = str(call.arguments.get("by", "anyone"))
        if ctx.answer is None:
            raise NeedsInput(question, schema, by=by)
        if problems := self._codec.validator(schema)(ctx.answer):
            told = "; ".join(f"{path or 'the answer'} {message}" for path, message in problems)
            raise NeedsInput(f"{question} (not usable: {told})", schema, by=by)
        return ctx.answer

    def estimate(self, call: Call) -> Prior | None:
        """A wait takes as long as it says; to ask takes no time, and waiting for a person is no work."""
        if call.tool != _WAIT.name:
            return QUICK
        length = parse_duration(str(call.arguments.get("for")))
        if length is None:
            return None
        return Prior(p10_s=length / 1000, p50_s=length / 1000, p90_s=length / 1000, size_class=f"{length} ms")

    def _ask_problems(self, arguments: JsonObject) -> Sequence[tuple[str, str]]:
        try:
            self._codec.validator(_answer_schema(arguments))
        except ValueError as exc:
            return [("/schema", f"is not a JSON Schema: {exc}")]
        return ()


def _answer_schema(arguments: JsonObject) -> JsonObject:
    said = arguments.get("schema", "string")
    return said if isinstance(said, dict) else {"type": said}


def _wait_problems(arguments: JsonObject) -> Sequence[tuple[str, str]]:
    if sum(name in arguments for name in ("for", "until", "event")) != 1:
        return [("", "needs exactly one of 'for', 'until' and 'event'")]
    if "event" not in arguments and arguments.keys() & {"key", "timeout"}:
        return [("", "'key' and 'timeout' belong to 'event'")]
    moment = arguments.get("until")
    for name in ("for", "timeout"):
        if name in arguments and parse_duration(str(arguments[name])) is None:
            return [(f"/{name}", "is not a duration, write 500ms, 30s, 1h30m")]
    if moment is not None and _instant(str(moment)) is None:
        return [("/until", "is not an instant, write 2026-01-31T12:00:00Z")]
    return ()


def _listening(arguments: JsonObject, now: Instant) -> Listening:
    key, timeout = arguments.get("key"), arguments.get("timeout")
    length = None if timeout is None else parse_duration(str(timeout))
    until = None if length is None else Instant(now + length)
    return Listening(event=str(arguments["event"]), key=None if key is None else str(key), until=until)


def _due(arguments: JsonObject, now: Instant) -> Instant:
    if "until" in arguments:
        until = _instant(str(arguments["until"]))
        assert until is not None, "validated before the call"
        return until
    length = parse_duration(str(arguments["for"]))
    assert length is not None, "validated before the call"
    return Instant(now + length)


def _instant(text: str) -> Instant | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else Instant(round(moment.timestamp() * 1000))
