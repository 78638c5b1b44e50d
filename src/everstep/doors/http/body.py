"""How a body is read: JSON only, within bounds, never unpacked."""

from typing import Final

from everstep.domain.errors import EverstepError, LimitExceeded, Validation
from everstep.domain.values import JsonValue, NotJson
from everstep.doors.http.answer import Message, Receive, Scope
from everstep.wire.values import loads_strict

JSON: Final = "application/json"


class CallerLeft(Exception):
    """Nobody waits for the reply any more."""


def headers_of(scope: Scope) -> dict[str, str]:
    """By lower-case name; raises Validation where one that decides something is said twice."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "authorization", "content-type", "content-length"):
            raise Validation(f"the header '{name}' is given twice")
        found[name] = value.decode("latin-1")
    return found


def bounded(receive: Receive, most: int) -> Receive:
    """The same stream of messages; raises LimitExceeded once a body is longer than it may be."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body") or b"") if message["type"] == "http.request" else 0
        if seen > most:
            raise too_large(most)
        return message

    return counted


def too_large(most: int) -> LimitExceeded:
    """The refusal of a body."""
    return LimitExceeded(f"the body has more than {most} bytes", what_to_do="send less")


async def read_json(headers: dict[str, str], receive: Receive, most: int) -> JsonValue:
    """The body's value; None if there is no body. Raises what is wrong with it."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise too_large(most)
    body = await _whole(receive)
    if not body:
        return None
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _unsupported("a body is never unpacked: send it as it is")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise _unsupported(f"a body must be {JSON}")
    try:
        return loads_strict(body, bytes_max=most)
    except NotJson as error:
        raise Validation(f"the body is not JSON: {error}") from None


async def _whole(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerLeft
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _unsupported(why: str) -> EverstepError:
    return EverstepError(why, code="unsupported_media_type", what_to_do="send JSON with Content-Type: application/json")
