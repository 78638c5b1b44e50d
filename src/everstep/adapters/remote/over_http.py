"""A server elsewhere (Streamable HTTP), through the guard. A message is a request; its answer is JSON, or a stream."""

import contextlib
from dataclasses import dataclass, replace
from typing import Final

from everstep.adapters.net.client import Client
from everstep.adapters.net.guard import Asked
from everstep.adapters.net.message import Reply, Request
from everstep.adapters.remote.link import CALL_S, FRAME_BYTES, Broken, Heard, Lost, read, spelled
from everstep.domain.failure import EffectState
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Denied, ToolError

_ASKED: Final = Asked(use="write", literal=True, configured=True, came_from="the configuration")


@dataclass
class HttpLink:
    """One session."""

    client: Client
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """Credentials, as the operator says."""
    version: str = ""
    containment: JsonObject | None = None
    _session: str | None = None
    _heard: Heard | None = None
    _lost: Lost | None = None

    async def open(self, heard: Heard, lost: Lost) -> None:
        """Nothing is sent yet."""
        self._heard, self._lost = heard, lost

    async def send(self, message: JsonObject) -> None:
        """Send it, and hear whatever comes back."""
        assert self._heard is not None
        answer = Answer(self._heard)
        reply = await self._post(message, answer)
        self._session = reply.header("mcp-session-id") or self._session
        answer.end()
        if "id" in message and "method" in message and message["id"] not in answer.ids:
            raise Broken(f"{self.url} ended its answer without one")

    async def close(self) -> None:
        """Tell the server, which may not care."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(ToolError):
                await self.client.send(self._request("DELETE", b"", session))

    async def _post(self, message: JsonObject, answer: "Answer") -> Reply:
        request = self._request("POST", spelled(message), self._session)
        reply = await self.client.send(replace(request, drain=answer.feed))
        if reply.status < 300:
            return reply
        if reply.status == 404 and self._session is not None:
            error: ToolError = Broken(f"{self.url} has forgotten this session", made=EffectState.NONE)
            self._session = None
            assert self._lost is not None
            self._lost(error)
            raise error
        if reply.status in {401, 403}:
            raise Denied(f"{self.url} answered {reply.status}", code=f"http_{reply.status}")
        body = read(answer.raw)
        if body is not None and "id" in body:  # an error of the protocol, whatever the status
            return reply
        error = Broken(f"{self.url} answered {reply.status}", code=f"http_{reply.status}")
        if reply.status < 500 and reply.status not in {408, 425, 429}:
            error.category = "configuration"
        raise error

    def _request(self, method: str, body: bytes, session: str | None) -> Request:
        headers = [
            ("Accept", "application/json, text/event-stream"),
            *([("Content-Type", "application/json")] if body else []),
            *([("MCP-Session-Id", session)] if session else []),
            *([("MCP-Protocol-Version", self.version)] if self.version else []),
            *self.headers,
        ]
        return Request(
            method=method,
            url=self.url,
            asked=_ASKED,
            headers=tuple(headers),
            body=body,
            max_bytes=FRAME_BYTES,
            total_s=CALL_S * 10,
        )


class Answer:
    """What comes back, as it comes: an event of a stream is heard at once, one JSON value when it is whole."""

    def __init__(self, heard: Heard) -> None:
        self.raw = bytearray()
        self.ids: list[JsonValue] = []
        """Of what was answered."""
        self._heard = heard
        self._line = b""
        self._event: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        self.raw += piece
        if self._streamed:
            *lines, self._line = (self._line + piece).split(b"\n")
            for line in lines:
                self._take(line.rstrip(b"\r"))

    def end(self) -> None:
        """Nothing more comes."""
        if not self._streamed:
            self._hear(bytes(self.raw))
            return
        self._take(self._line.rstrip(b"\r"))
        self._take(b"")

    @property
    def _streamed(self) -> bool:
        return not self.raw.lstrip().startswith((b"{", b"["))

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._event.append(line[5:].removeprefix(b" "))
        elif not line and self._event:
            data, self._event = b"\n".join(self._event), []
            self._hear(data)

    def _hear(self, frame: bytes) -> None:
        message = read(frame)
        if message is not None:
            self.ids += [] if "method" in message else [message.get("id")]
            self._heard(message)
