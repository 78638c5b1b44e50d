"""How a reply is sent: over HTTP, or in place of a WebSocket that is not opened."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

from everstep.domain.errors import EverstepError
from everstep.doors.api import Response
from everstep.doors.api.front import refused

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ALWAYS: Final = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
CHALLENGE: Final = {"www-authenticate": "Bearer"}


def new_request_id() -> str:
    """By which a request is found in the log."""
    return f"r_{secrets.token_hex(10)}"


async def send_response(response: Response, send: Send, *, websocket: bool = False) -> None:
    """One reply, whole."""
    prefix = "websocket.http.response" if websocket else "http.response"
    headers = {**response.headers, "content-length": str(len(response.body))}
    if response.status == 304:
        del headers["content-length"]
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": f"{prefix}.start", "status": response.status, "headers": lines})
    await send({"type": f"{prefix}.body", "body": response.body})


async def send_parts(response: Response, receive: Receive, send: Send) -> None:
    """A reply that is made while it is sent, until the caller has it all or has left."""
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": lines})
    left = asyncio.ensure_future(_left(receive))
    try:
        assert response.parts is not None
        async for part in response.parts:
            if left.done():
                return
            if part:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def refuse(error: EverstepError, scope: Scope, send: Send, more: Mapping[str, str] | None = None) -> None:
    """A refusal as problem+json; a WebSocket is refused before it is opened."""
    response = refused(error)
    headers = {**response.headers, **(CHALLENGE if response.status == 401 else {}), **(more or {})}
    said = Response(status=response.status, headers=headers, body=response.body)
    websocket = scope["type"] == "websocket"
    if websocket and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    await send_response(said, send, websocket=websocket)


def marking(send: Send, request_id: str) -> Send:
    """Every reply carries the same headers, whoever made it."""
    fixed = (*ALWAYS, (b"x-request-id", request_id.encode()))
    names = {name for name, _ in fixed}

    async def marked(message: Message) -> None:
        if message["type"].endswith("response.start"):
            own = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in names]
            kept = dict(fixed)
            kept.update({
                name.lower(): value for name, value in message.get("headers", ()) if name.lower() == b"cache-control"
            })  # fmt: skip
            message = {**message, "headers": [*own, *kept.items()]}
        await send(message)

    return marked
