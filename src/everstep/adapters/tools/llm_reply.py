"""The reply of a chat endpoint as it comes in: events of a stream, or one JSON value; and what it used."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.codec import Validator
from everstep.ports.tool import ToolError

RAW_BYTES: Final = 64 << 10
"""So much of a reply that is no stream of events is kept to be looked at as a whole."""
TOKENS: Final = 1_000_000
SHOWN: Final = 3
ERROR_CHARS: Final = 300
WHOLE_MAX: Final = 2**53
"""Larger numbers are none that a journal keeps."""


@record
class Used:
    """Tokens, and what they cost."""

    tokens_in: int
    tokens_out: int
    cost: float

    @property
    def json(self) -> JsonObject:
        """As a result tells it."""
        return {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out, "cost": self.cost}


def in_all(told: Sequence[Used | None]) -> JsonObject | None:
    """What several questions used together; nothing is guessed where one does not say."""
    known = [one for one in told if one is not None]
    if len(known) < len(told):
        return None
    cost = round(sum(one.cost for one in known), 12)
    return Used(
        tokens_in=sum(one.tokens_in for one in known), tokens_out=sum(one.tokens_out for one in known), cost=cost
    ).json


@record
class Heard:
    """What a model said."""

    text: str
    model: str
    finish: str | None
    refusal: str | None = None
    usage: Used | None = None


class ReplyReader:
    """Puts a reply together piece by piece, and passes its text on as it comes."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.usage: Mapping[str, Any] | None = None
        self.raw = bytearray()
        self.whole = False
        """Whether the reply says that it has ended."""
        self._show = show
        self._rest = b""
        self._streamed = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._model: str | None = None
        self._finish: str | None = None
        self._chosen = False

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        if len(self.raw) < RAW_BYTES or not self._streamed:
            self.raw += piece
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._streamed = True
                self._event(line[5:].strip())

    def close(self, model: str) -> Heard:
        """What was said; raises what is no reply at all."""
        if self._rest.startswith(b"data:"):
            self._event(self._rest[5:].strip())
        if not self._streamed:
            self._take(_json(bytes(self.raw)))
            self.whole = True
        if self.whole and not self._chosen:
            raise _invalid("the endpoint answers without choices")
        refusal = "".join(self._refusal) or None
        if self._finish == "content_filter":
            refusal = refusal or "its filter does not let the answer through"
        text = "".join(self._text)
        return Heard(text=text, model=self._model or model, finish=self._finish, refusal=refusal)

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.whole = True
        elif data:
            self._take(_json(data))

    def _take(self, said: JsonObject) -> None:
        if said.get("error"):
            raise _invalid(f"the endpoint broke off with an error: {said['error']!s:.{ERROR_CHARS}}")
        self.usage = said["usage"] if isinstance(said.get("usage"), dict) else self.usage  # type: ignore[assignment]
        self._model = said["model"] if isinstance(said.get("model"), str) else self._model  # type: ignore[assignment]
        choices = said.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        self._chosen = True
        part = choice.get("delta") or choice.get("message")
        if isinstance(part, dict):
            self._say(part)
        if isinstance(choice.get("finish_reason"), str):
            self._finish = str(choice["finish_reason"])
            self.whole = True

    def _say(self, part: JsonObject) -> None:
        if isinstance(refusal := part.get("refusal"), str):
            self._refusal.append(refusal)
        if isinstance(text := part.get("content"), str) and text:
            self._text.append(text)
            self._show(text)


class NoReply(ToolError):
    """What came back is not what such an endpoint says; it may be the next time."""

    category = "transient"


def _json(data: bytes) -> JsonObject:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise _invalid(f"the endpoint does not answer in JSON: {data[:100].decode(errors='replace')}") from None
    if not isinstance(said, dict):
        raise _invalid("the endpoint does not answer with an object")
    return said


def _invalid(what: str) -> NoReply:
    return NoReply(what, code="llm_invalid")


def cost_of(usage: Mapping[str, Any] | None, price_in: float, price_out: float) -> Used | None:
    """What a reply says it used, at these prices for a million tokens; None if it does not say."""
    if usage is None:
        return None
    tokens_in, tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not (_is_count(tokens_in) and _is_count(tokens_out)):
        return None
    cost = (tokens_in * price_in + tokens_out * price_out) / TOKENS
    return Used(tokens_in=tokens_in, tokens_out=tokens_out, cost=round(cost, 12))


def _is_count(said: object) -> TypeGuard[int]:
    return isinstance(said, int) and 0 <= said <= WHOLE_MAX


def parsed(text: str, check: Validator) -> tuple[JsonValue, str | None]:
    """The JSON of an answer, or what is wrong with it; a fence around it does not count."""
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```"):
        inner = inner.strip("`").removeprefix("json").strip()
    try:
        value: JsonValue = json.loads(inner, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON ({error})"
    problems = check(value)
    if not problems:
        return value, None
    return None, "; ".join(f"{path or 'the answer'} {message}" for path, message in problems[:SHOWN])


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
