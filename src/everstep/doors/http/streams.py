"""Event streams over HTTP: a WebSocket, or server-sent events, on the same paths as the pages.

One task per watcher sends, another listens; neither does anything while nothing happens. Everything is checked before
a WebSocket is opened, so a refusal is an ordinary reply.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final

from everstep.doors.api import Api, Request, frames
from everstep.doors.api.outlet import End
from everstep.doors.api.stream import Watch
from everstep.doors.http.answer import Receive, Scope, Send
from everstep.doors.http.app import request_of
from everstep.doors.http.gate import SUBPROTOCOL
from everstep.doors.http.rate import too_many

MESSAGES_MAX: Final = 20
"""In a second."""
MESSAGE_BYTES_MAX: Final = 1024
LEFT: Final = End(code=1006, reason="left")
TOO_LOUD: Final = End(code=1008, reason=f"more than {MESSAGES_MAX} messages in a second")
NONSENSE: Final = End(code=4400, reason='the only message is {"type":"ping"}')
SSE: Final = (
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),  # a proxy that waits for more would hold events back
)


class Streams:
    """Those who watch through the network."""

    def __init__(self, api: Api, *, sockets_per_token: int) -> None:
        self._api = api
        self._most = sockets_per_token
        self._open: Counter[str] = Counter()
        self.ended: Counter[int] = Counter()
        """How streams have ended, by close code."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Show frames until somebody ends it; raises what is refused before anything is shown."""
        request = request_of(scope)
        assert request.principal is not None
        with self._counted(request.principal.token or request.principal.owner):
            over_socket = scope["type"] == "websocket"
            watch = await self._api.watch(request if over_socket else resumed(request))
            try:
                if over_socket:
                    await socket(watch, scope, receive, send)
                else:
                    await server_sent(watch, receive, send)
            except OSError:  # nobody is there any more to be told
                return
            finally:
                self.ended[(watch.end or LEFT).code] += 1

    @property
    def open(self) -> int:
        """How many there are now."""
        return self._open.total()

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        if self._open[name] >= self._most:
            raise too_many(f"more than {self._most} streams at the same time", 5)
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]


async def socket(watch: Watch, scope: Scope, receive: Receive, send: Send) -> None:
    """Frames as messages; the close code says why there are no more."""
    await receive()  # it wants to connect
    chosen = SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
    await send({"type": "websocket.accept", "subprotocol": chosen})
    async with listening(watch, receive), aclosing(watch.frames()) as told:
        async for frame in told:
            await send({"type": "websocket.send", "text": frame.text})
    end = watch.end or LEFT
    if end is not LEFT:
        await send({"type": "websocket.close", "code": end.code, "reason": reason_of(end, watch)})


async def server_sent(watch: Watch, receive: Receive, send: Send) -> None:
    """Frames as server-sent events; whoever lost the connection comes back with the last id."""
    await send({"type": "http.response.start", "status": 200, "headers": list(SSE)})
    async with listening(watch, receive), aclosing(watch.frames()) as told:
        async for frame in told:
            await send({"type": "http.response.body", "body": frame.sse, "more_body": True})
    end = watch.end or LEFT
    if end.code not in (LEFT.code, 1013):
        last = frames.bye(end.reason, watch.place).sse if end.code == 1000 else b""  # there is no close code
        await send({"type": "http.response.body", "body": last, "more_body": False})


def resumed(request: Request) -> Request:
    """`Last-Event-ID` wins over `after`."""
    last = request.headers.get("last-event-id")
    return request if not last else replace(request, query={**request.query, "after": last})


def reason_of(end: End, watch: Watch) -> str:
    """In words, and for who was too slow, the place it has come to."""
    if end.code != 1013:
        return end.reason
    return f"{end.reason} {'cursor' if isinstance(watch.place, str) else 'seq'}={watch.place}"


@asynccontextmanager
async def listening(watch: Watch, receive: Receive) -> AsyncIterator[None]:
    """While frames are sent: hear what the watcher says, and cut a frame short that it does not take."""
    hearing = asyncio.create_task(hear(watch, receive))
    try:
        async with asyncio.timeout(None) as sending:
            watch.outlet.dropped = lambda: sending.reschedule(0)
            yield
    except (TimeoutError, OSError):  # let go; or nobody is there any more
        return
    finally:
        hearing.cancel()
        await asyncio.wait((hearing,))


async def hear(watch: Watch, receive: Receive) -> None:
    """What a watcher says: only that it wants a sign of life, and that it leaves."""
    second, heard = 0, 0
    while True:
        message = await receive()
        if message["type"] in ("websocket.disconnect", "http.disconnect"):
            return watch.outlet.drop(LEFT)
        if message["type"] != "websocket.receive":
            continue
        now = int(time.monotonic())
        second, heard = now, heard + 1 if now == second else 1
        if heard > MESSAGES_MAX:
            return watch.outlet.drop(TOO_LOUD)
        if not is_ping(message):
            return watch.outlet.drop(NONSENSE)
        watch.pong()


def is_ping(message: Mapping[str, object]) -> bool:
    """Whether this is the one message there is."""
    text = message.get("text")
    if not isinstance(text, str) or len(text) > MESSAGE_BYTES_MAX:
        return False
    try:
        return bool(json.loads(text) == {"type": "ping"})
    except ValueError:
        return False
