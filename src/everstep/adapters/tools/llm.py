"""`llm.chat` and `llm.json`: any endpoint that speaks OpenAI's chat completions, named in the configuration.

Never a tool call by itself: what a model wants done is a value for later steps. The reply is streamed to whoever
watches; what counts is what was recorded, and that is never paid for twice.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.net import Asked, Client, Reply, Request
from everstep.adapters.tools.http_answer import judge
from everstep.adapters.tools.llm_reply import Heard, ReplyReader, cost_of, in_all, parsed
from everstep.adapters.tools.llm_specs import CHAT, JSON, specs
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.codec import Validator
from everstep.ports.tool import Call, Ctx, Health, Impossible, Misconfigured, ToolError, ToolSpec, Uncertain

REPLY_BYTES: Final = 4 << 20
HEALTH_S: Final = 4.0
REPAIRS: Final = 1
"""How often a model is shown what is wrong with its JSON, within one call."""
_PASSED_ON: Final = ("temperature", "max_tokens", "stop")


@record
class Endpoint:
    """A place where models answer; prices are for a million tokens."""

    name: str
    url: str
    auth: str = ""
    model: str = ""
    price_in: float = 0.0
    price_out: float = 0.0
    json_schema: bool = True


class LlmTools(ToolAdapter):
    """Both tools; none where no endpoint is named."""

    def __init__(
        self,
        client: Client,
        endpoints: Sequence[Endpoint],
        compile_schema: Callable[[JsonObject], Validator],
        *,
        secret: Callable[[str], str | None],
        timeout_s: float,
    ) -> None:
        self._client = client
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self._compile = compile_schema
        self._secret = secret
        self._timeout_s = timeout_s

    def tools(self) -> Sequence[ToolSpec]:
        """What there is."""
        return specs(self._timeout_s) if self._endpoints else ()

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A question, an endpoint and a model; a schema that is one."""
        said = call.arguments
        problems = []
        if ("prompt" in said) == ("messages" in said):
            problems.append(("", "needs exactly one of 'prompt' and 'messages'"))
        name = said.get("endpoint")
        if name is not None and name not in self._endpoints:
            problems.append(("/endpoint", f"names no endpoint; there are: {', '.join(self._endpoints)}"))
        elif not said.get("model") and not self._endpoint(call).model:
            problems.append(("/model", "is needed: the endpoint has no model of its own"))
        schema = said.get("schema")
        if call.tool == JSON and isinstance(schema, dict):
            try:
                self._compile(schema)
            except ValueError as error:
                problems.append(("/schema", f"is not a JSON Schema: {error}"))
        return problems

    def target(self, call: Call) -> str:
        """Each endpoint has a breaker and a rate of its own."""
        return self._endpoint(call).name

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Ask, and hold the answer against what was wanted."""
        endpoint, said = self._endpoint(call), call.arguments
        if call.tool == CHAT:
            heard = await self._ask(endpoint, _body(said, endpoint, _messages(said)), ctx)
            used = None if heard.usage is None else heard.usage.json
            return {"text": heard.text, "model": heard.model, "finish_reason": heard.finish, "usage": used}
        return await self._json(endpoint, said, ctx)

    async def health(self) -> Health:
        """Whether the first endpoint lists its models: no tokens are spent."""
        endpoint = next(iter(self._endpoints.values()), None)
        if endpoint is None:
            return Health()
        try:
            reply = await self._client.send(self._request(endpoint, "/models", b"", total_s=HEALTH_S))
        except ToolError as error:
            return Health(status="unhealthy", detail=str(error))
        well = reply.status < 500
        return Health(status="healthy" if well else "unhealthy", detail="" if well else f"it answered {reply.status}")

    async def close(self) -> None:
        """Let connections go."""
        await self._client.close()

    # --- parts ---

    def _endpoint(self, call: Call) -> Endpoint:
        """The one that is named, else the first."""
        named = self._endpoints.get(str(call.arguments.get("endpoint")))
        return named or next(iter(self._endpoints.values()))

    async def _json(self, endpoint: Endpoint, said: JsonObject, ctx: Ctx) -> JsonValue:
        schema = said["schema"]
        assert isinstance(schema, dict)
        check = self._compile(schema)
        messages = _messages(said)
        if not endpoint.json_schema:
            wanted = f"Answer with JSON only, and nothing around it, that fits this JSON Schema:\n{json.dumps(schema)}"
            messages = [{"role": "system", "content": wanted}, *messages]
        form: JsonObject = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": False}}
        spent: list[Heard] = []
        while True:
            body = _body(said, endpoint, messages)
            if endpoint.json_schema:
                body["response_format"] = form
            heard = await self._ask(endpoint, body, ctx)
            spent.append(heard)
            if heard.finish == "length":
                raise LlmTooLong("the answer was cut off before its JSON was whole", code="llm_too_long")
            value, problem = parsed(heard.text, check)
            if problem is None:
                return {"value": value, "model": heard.model, "usage": in_all([one.usage for one in spent])}
            if len(spent) > REPAIRS:
                raise LlmInvalid(f"{heard.model} does not keep to the form it was asked for: {problem}")
            again = f"That does not fit: {problem}. Answer again, with the corrected JSON only."
            messages = [*messages, {"role": "assistant", "content": heard.text}, {"role": "user", "content": again}]

    async def _ask(self, endpoint: Endpoint, body: JsonObject, ctx: Ctx) -> Heard:
        """One request; what it used is recorded whatever comes of it."""
        reader = ReplyReader(ctx.stream)
        sent = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        total_s = max(0.1, min(self._timeout_s, ctx.remaining()))
        request = self._request(endpoint, "/chat/completions", sent, total_s=total_s)
        try:
            reply = await self._client.send(replace(request, drain=reader.feed, max_bytes=REPLY_BYTES))
            _judged(reply, reader)
            heard = reader.close(str(body["model"]))
        finally:
            used = cost_of(reader.usage, endpoint.price_in, endpoint.price_out)
            if used is not None:
                ctx.usage(cost=used.cost, tokens_in=used.tokens_in, tokens_out=used.tokens_out)
        if heard.refusal is not None:
            raise Impossible(f"{heard.model} refuses: {heard.refusal}", code="llm_refused")
        if not reader.whole:
            raise Uncertain("the answer broke off in the middle", code="net_read")
        return replace(heard, usage=used)

    def _request(self, endpoint: Endpoint, path: str, body: bytes, *, total_s: float) -> Request:
        headers = [("Accept", "text/event-stream, application/json"), ("User-Agent", "everstep")]
        headers += [("Content-Type", "application/json")] if body else []
        if endpoint.auth:
            value = self._secret(endpoint.auth.removeprefix("secret:"))
            if value is None:
                raise Misconfigured(f"there is no secret '{endpoint.auth}'", code="secret_missing")
            headers.append(("Authorization", f"Bearer {value}"))
        asked = Asked(use="write", literal=True, configured=True, came_from="the configuration")
        return Request(
            method="POST" if body else "GET",
            url=endpoint.url.rstrip("/") + path,
            asked=asked,
            headers=tuple(headers),
            body=body,
            redirects=0,
            total_s=total_s,
        )


class LlmInvalid(ToolError):
    """The model did not keep to the form; it may the next time."""

    category = "transient"

    def __init__(self, message: str) -> None:
        super().__init__(message, code="llm_invalid")


class LlmTooLong(ToolError):
    """More than the model can take or was allowed to say."""

    category = "resource"


def _messages(said: JsonObject) -> list[JsonValue]:
    given = said.get("messages")
    first: list[JsonValue] = [{"role": "system", "content": said["system"]}] if said.get("system") else []
    asked: JsonValue = {"role": "user", "content": said.get("prompt")}
    return [*first, *given] if isinstance(given, list) else [*first, asked]


def _body(said: JsonObject, endpoint: Endpoint, messages: list[JsonValue]) -> JsonObject:
    more = {name: said[name] for name in _PASSED_ON if said.get(name) is not None}
    streamed: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
    return {"model": said.get("model") or endpoint.model, "messages": messages, **streamed, **more}


def _judged(reply: Reply, reader: ReplyReader) -> None:
    """An answer with the status of an error; that the question is too long is said in its body."""
    if reply.status < 300:
        return
    text = reader.raw.decode(errors="replace")
    if reply.status in (400, 413, 422) and ("context_length" in text or "maximum context" in text):
        raise LlmTooLong("the question is longer than the model can take", code="llm_too_long")
    judge(replace(reply, body=bytes(reader.raw)), None)
