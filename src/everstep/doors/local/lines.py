"""How a request and its reply are written: one line of JSON each."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from everstep.domain.errors import EverstepError, Validation
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.values import JsonValue, NotJson
from everstep.doors.api import Request, Response, split_target
from everstep.doors.local.place import LINE_BYTES_MAX
from everstep.wire.values import loads_strict

ACTOR: Final = "everstep-actor"
JSON: Final = "application/json"
_KINDS: Final = {kind.value: kind for kind in (ActorKind.HUMAN, ActorKind.LLM, ActorKind.SERVICE)}
_VIAS: Final = ("cli", "http", "mcp", "python")


def read_request(line: bytes, owner: str) -> Request:
    """A request from its line; raises Validation."""
    try:
        said = loads_strict(line, bytes_max=LINE_BYTES_MAX)
    except NotJson as error:
        raise Validation(f"not a request: {error}") from None
    if not isinstance(said, dict) or not isinstance(said.get("path"), str) or not isinstance(said.get("method"), str):
        raise Validation('a request is {"method", "path", "headers", "body"}')
    given = said.get("headers", {})
    if not isinstance(given, dict):
        raise Validation("'headers' must be an object")
    headers = {name.lower(): str(value) for name, value in given.items()}
    path, query = split_target(str(said["path"]))
    return Request(
        method=str(said["method"]),
        path=path,
        query=query,
        headers=headers,
        body=said.get("body"),
        who=Who(owner=owner, actor=actor_of(headers.get(ACTOR), owner)),
        local=True,
    )


def actor_of(said: str | None, owner: str) -> Actor:
    """Who acts: the owner at a terminal, unless `KIND:ID@VIA` says otherwise; raises Validation."""
    if not said:
        return Actor(kind=ActorKind.HUMAN, id=owner, via="cli")
    kind, _, rest = said.partition(":")
    name, at, via = rest.rpartition("@")
    if not at or via not in _VIAS:
        name, via = rest, "cli"
    if kind not in _KINDS or len(name) > 128 or not name.isprintable():
        raise Validation(f"'{ACTOR}' must be KIND:ID@VIA, of which KIND is one of {', '.join(_KINDS)}")
    return Actor(kind=_KINDS[kind], id=name or owner, via=via)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever the other side has done with it."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def envelope(response: Response) -> bytes:
    """A reply as its line; what is no JSON goes as text."""
    headers = json.dumps(dict(response.headers)).encode()
    body = response.body or b"null"
    if not response.headers.get("content-type", JSON).endswith("json"):
        body = json.dumps(body.decode(errors="replace")).encode()
    return b'{"status":%d,"headers":%s,"body":%s}\n' % (response.status, headers, body)


def refusal(body: Mapping[str, Any]) -> EverstepError:
    """A refusal as what it was on the other side."""
    error = body.get("error") or {}
    return EverstepError(
        str(error.get("message") or "refused"),
        code=error.get("code"),
        what_to_do=error.get("what_to_do"),
        details=error.get("details"),
    )


def spelled(value: JsonValue) -> bytes:
    """A value as one line of ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()
