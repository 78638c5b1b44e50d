"""A server elsewhere (Streamable HTTP), through the guard. A message is a request; its answer is JSON, or a stream."""

import contextlib
from dataclasses import dataclass
from typing import Final

from everstep.adapters.net.client import Client
from everstep.adapters.net.guard import Asked
from everstep.adapters.net.message import Reply, Request
from everstep.adapters.remote.link import CALL_S, FRAME_BYTES, Broken, Heard, Lost, read, spelled
from everstep.domain.failure import EffectState
from everstep.domain.values import JsonObject
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
        reply = await self._post(message)
        self._session = reply.header("mcp-session-id") or self._session
        assert self._heard is not None
        found = [answer for frame in frames(reply) if (answer := read(frame)) is not None]
        for answer in found:
            self._heard(answer)
        if "id" in message and "method" in message and not any(one.get("id") == message["id"] for one in found):
            raise Broken(f"{self.url} ended its answer without one")

    async def close(self) -> None:
        """Tell the server, which may not care."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(ToolError):
                await self.client.send(self._request("DELETE", b"", session))

    async def _post(self, message: JsonObject) -> Reply:
        reply = await self.client.send(self._request("POST", spelled(message), self._session))
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
        body = read(reply.body)
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


def frames(reply: Reply) -> list[bytes]:
    """The messages of an answer: the one it is, or the events of its stream."""
    kind = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        return [reply.body] if reply.body.strip() else []
    found, data = [], []
    for line in [*reply.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            found.append(b"\n".join(data))
            data = []
    return found
