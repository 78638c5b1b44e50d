"""Somebody at the gate of an engine in memory, without a socket: one ASGI call, one answer, every header looked at."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from everstep.domain.access import ALL_SCOPES
from everstep.domain.actors import ActorKind
from everstep.domain.ids import Millis
from everstep.domain.values import JsonValue
from everstep.doors.api import Api
from everstep.doors.http import make_app
from everstep.doors.http.answer import App, Message
from everstep.doors.http.gate import Gate, Mount
from everstep.doors.http.streams import Streams
from everstep.facade.access import NewToken
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from tests.unit.engine.plans import Tools

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Of a refusal."""
        assert self.headers["content-type"] == "application/problem+json", self
        return str(self.json["error"]["code"])


class Visitor:
    """Asks a gate."""

    def __init__(self, engine: TestEngine, gate: Gate, token: str) -> None:
        self.engine = engine
        self.gate = gate
        self.token = token

    async def ask(
        self,
        method: str,
        target: str,
        body: JsonValue | bytes = None,
        *,
        token: str | None = "",
        headers: Headers | None = None,
        scheme: str = "http",
    ) -> Answer:
        """`token`: the visitor's own, another one, or none at all; `headers` win over the usual ones."""
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        usual = {"host": "127.0.0.1:7717"} | ({"content-type": "application/json"} if sent else {})
        if token is not None:
            usual["authorization"] = f"Bearer {token or self.token}"
        given = [(name, value) for name, value in {**usual, **(headers or {})}.items() if value]
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "scheme": scheme,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given],
        }
        messages: list[Message] = []
        parts = [{"type": "http.request", "body": sent, "more_body": False}]

        async def receive() -> Message:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.append(message)

        await self.gate(scope, receive, send)
        return answer_of(messages)

    async def good(self, method: str, target: str, body: JsonValue = None, **more: Any) -> Any:
        answer = await self.ask(method, target, body, **more)
        assert answer.status < 300, answer.body
        return answer.json if answer.body else None

    async def knock(self, target: str, headers: Headers) -> list[Message]:
        """A WebSocket: what the gate and the app behind it say."""
        path, _, query = target.partition("?")
        scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "subprotocols": [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",") if one],
            "extensions": {"websocket.http.response": {}},
        }
        messages: list[Message] = []

        async def receive() -> Message:
            if not messages:
                return {"type": "websocket.connect"}
            await asyncio.Event().wait()
            return {"type": "websocket.disconnect"}

        async def send(message: Message) -> None:
            messages.append(message)

        await self.gate(scope, receive, send)
        return messages

    async def issue(self, *scopes: str, owner: str = "local", expires_in_ms: int | None = None) -> str:
        wanted = NewToken(
            name="t",
            owner=owner,
            actor_kind=ActorKind.HUMAN,
            actor_id=owner,
            scopes=frozenset(scopes or ALL_SCOPES),
            expires_in_ms=None if expires_in_ms is None else Millis(expires_in_ms),
        )
        return (await self.engine.desk.access.issue(wanted)).value


def answer_of(messages: list[Message]) -> Answer:
    start, *rest = messages
    pairs = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
    headers = dict(pairs)
    assert len(headers) == len(pairs), f"a header is sent twice: {pairs}"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["x-request-id"]
    return Answer(start["status"], headers, b"".join(one.get("body", b"") for one in rest))


@asynccontextmanager
async def visiting(
    *,
    streams: App | None = None,
    real_streams: bool = False,
    mounts: Mapping[str, Mount] | None = None,
    tools: Tools | None = None,
    **config: JsonValue,
) -> AsyncIterator[Visitor]:
    """A gate, and somebody before it who may do everything."""
    made = tools or Tools()
    said = {"serve.rate": "10000/1s", **{name.replace("__", "."): value for name, value in config.items()}}
    settings = load_settings(said, env={})
    async with TestEngine(made.all()) as engine:
        api = Api(engine.desk, settings=settings, version="9.9", incarnation="w_1")
        streams = Streams(api, sockets_per_token=32) if real_streams else streams
        gate = make_app(api, engine.desk.access, settings, streams=streams, mounts=mounts)
        visitor = Visitor(engine, gate, "")
        visitor.token = await visitor.issue()
        yield visitor
        made.release.set()
