"""One try of one way: frames until it ends. Every end is an exception that says what to do."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from everstep.client.rules import SILENCE_S, STOP_CODES, Frame
from everstep.domain import errors

WAIT_S: Final = 25
PAGE: Final = 500
UNTIL_END: Final = "until=end"
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
TRY_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_KINDS: Final[Mapping[int, type[errors.EverstepError]]] = {
    400: errors.Validation,
    403: errors.NotAllowed,
    404: errors.NotFound,
    409: errors.Conflict,
    412: errors.Conflict,
    422: errors.RequestError,
    429: errors.LimitExceeded,
    503: errors.Unavailable,
}


class Cut(Exception):
    """The connection is gone, or the server asks to come back."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


def not_ours(base: str) -> errors.Unavailable:
    """What answers is something else."""
    return errors.Unavailable(f"what answers at {base} is no everstep", what_to_do="look at the address")


class Over(Exception):
    """The stream has ended as it was asked to."""


class Wanted(Protocol):
    """What is watched, and from where."""

    @property
    def path(self) -> str:
        """Of the events."""

    @property
    def after(self) -> int | str | None:
        """What has been seen."""

    @property
    def until_end(self) -> bool:
        """Whether it ends with the task."""

    def query(self, **more: object) -> str:
        """As it is asked for now."""


def query_of(**named: object) -> str:
    """`?a=1&b=2`; what is None is left out."""
    given = {
        name: str(int(value) if isinstance(value, bool) else value)
        for name, value in named.items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def path_of(*parts: str) -> str:
    """`/v1/…`, every part escaped."""
    return "/".join(("/v1", *(quote(part, safe="") for part in parts)))


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> errors.EverstepError:
    """What the server has refused, as what it was there."""
    try:
        said = json.loads(body)["error"]
        details = dict(said.get("details") or {})
    except (ValueError, LookupError, TypeError, AttributeError):  # somebody else's words, as of a proxy on the way
        said, details = {}, {}
    kind = _KINDS.get(status, errors.EverstepError)
    return kind(
        str(said.get("message") or f"the server answered {status}"),
        code=said.get("code") or ("unauthenticated" if status == 401 else None),
        what_to_do=said.get("what_to_do"),
        details={**details, **retry_after(headers)},
    )


def retry_after(headers: Mapping[str, str]) -> dict[str, Any]:
    """How long the server asks to wait, if it does."""
    said = headers.get("retry-after", "")
    return {"retry_after_s": float(said)} if said.isdecimal() else {}


def ended(status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """A refused stream: what can be tried again is a cut."""
    error = refusal(status, headers, body)
    if status not in TRY_AGAIN:
        return error
    wait_s = error.details.get("retry_after_s")
    return Cut(error.message, wait_s if isinstance(wait_s, float) else None)


def closed(code: int | None, reason: str | None) -> Exception:
    """What a close code means; 1000 is ours only with our reason."""
    if code not in STOP_CODES or (code == 1000 and reason != UNTIL_END):
        return Cut(reason or f"closed with {code}")
    word = STOP_CODES[code]
    if word is None:
        return Over()
    kind = errors.NotFound if word == "not_found" else errors.EverstepError
    return kind(reason or f"the server closed the stream with {code}", code=word)


async def websocket(base: str, headers: Mapping[str, str], wanted: Wanted) -> AsyncGenerator[Frame, None]:
    """Frames as messages."""
    import asyncio

    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
    from websockets.typing import Subprotocol

    url = f"ws{base.removeprefix('http')}{wanted.path}{wanted.query(after=wanted.after)}"
    try:
        async with connect(
            url,
            additional_headers=headers,
            subprotocols=[Subprotocol("everstep.v1")],
            compression=None,
            max_size=None,
        ) as socket:
            while True:
                async with asyncio.timeout(SILENCE_S):
                    text = await socket.recv()
                yield json.loads(text)
    except InvalidStatus as error:
        reply = error.response
        named = {name.lower(): value for name, value in reply.headers.raw_items()}
        raise ended(reply.status_code, named, bytes(reply.body or b"")) from None
    except ConnectionClosed as error:
        got = error.rcvd
        raise closed(None if got is None else got.code, None if got is None else got.reason) from None
    except (OSError, TimeoutError, ValueError, WebSocketException) as error:
        raise Cut(str(error) or type(error).__name__) from error


async def server_sent(http: Any, wanted: Wanted) -> AsyncGenerator[Frame, None]:  # noqa: ANN401 -- imported when needed
    """Frames as server-sent events."""
    import httpx2

    place = {} if wanted.after is None else {"last-event-id": str(wanted.after)}
    headers = {"accept": "text/event-stream", **place}
    try:
        async with http.stream("GET", f"{wanted.path}{wanted.query()}", headers=headers, timeout=SILENCE_S) as reply:
            if reply.status_code != 200:
                raise ended(reply.status_code, reply.headers, await reply.aread())
            async for line in _lines(reply.aiter_bytes()):
                if line.startswith(b"data: "):
                    frame: Frame = json.loads(line[6:])
                    if frame["type"] == "bye" and frame["reason"] == UNTIL_END:
                        raise Over
                    yield frame
    except (httpx2.HTTPError, ValueError, LookupError) as error:
        raise Cut(str(error) or type(error).__name__) from error
    raise Cut("the server ended the stream")


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """As the protocol ends them: texts may hold characters at which others begin a new line."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line


async def poll(http: Any, wanted: Wanted) -> AsyncGenerator[Frame, None]:  # noqa: ANN401 -- imported when needed
    """Pages, one after the other, told as frames."""
    import httpx2

    live = False
    try:
        while True:
            if wanted.after is None and wanted.path != path_of("events"):
                yield await _snapshot(http, wanted, reset=False)
            path = f"{wanted.path}{wanted.query(after=wanted.after, limit=PAGE, wait=WAIT_S, ticks=None, until=None)}"
            reply = await http.get(path, headers={"accept": "application/json"}, timeout=WAIT_S + 15)
            if reply.status_code == 410:
                for frame in await _resync(http, wanted, refusal(410, reply.headers, reply.content)):
                    yield frame
                continue
            if reply.status_code != 200:
                raise ended(reply.status_code, reply.headers, reply.content)
            page = reply.json()
            for event in page["events"]:
                yield {"type": "event", "event": event}
            place = page["next_after"]
            at = {"cursor": place} if isinstance(place, str) else {"seq": place}
            yield {"type": "heartbeat" if live or not page["live"] else "live", **at}
            live = live or page["live"]
            if wanted.until_end and page["live"] and await _has_ended(http, wanted):
                raise Over
    except (httpx2.HTTPError, ValueError, LookupError) as error:
        raise Cut(str(error) or type(error).__name__) from error


async def _has_ended(http: Any, wanted: Wanted) -> bool:  # noqa: ANN401 -- imported when needed
    """Whether everything there will be was told: pages have no close code."""
    told = await _snapshot(http, wanted, reset=False)
    return told["task"]["status"] in ENDED and told["seq"] == wanted.after


async def _snapshot(http: Any, wanted: Wanted, *, reset: bool) -> Frame:  # noqa: ANN401 -- imported when needed
    reply = await http.get(wanted.path.removesuffix("/events"), timeout=WAIT_S)
    if reply.status_code != 200:
        raise ended(reply.status_code, reply.headers, reply.content)
    task = reply.json()
    return {"type": "snapshot", "seq": task["seq"], "reset": reset, "task": task}


async def _resync(http: Any, wanted: Wanted, error: errors.EverstepError) -> list[Frame]:  # noqa: ANN401 -- imported when needed
    frame: Frame = {"type": "resync_required", **error.details}
    if wanted.path == path_of("events"):
        return [frame]
    return [frame, await _snapshot(http, wanted, reset=True)]
