"""Api: find the route, check the names in the request, call the handler, turn what went wrong into a reply."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from everstep.domain.errors import EngineClosed, EverstepError, Validation
from everstep.domain.values import NotJson
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.handlers import HANDLERS
from everstep.doors.api.hub import Hub
from everstep.doors.api.request import Fields, Request, Response, reply, unknown_fields, unknown_query
from everstep.doors.api.routes import Match, match
from everstep.doors.api.stream import WATCHES, Watch
from everstep.doors.errors import MEDIA_TYPE, RETRY_AFTER_S, problem, refusal_of
from everstep.facade.desk import Desk
from everstep.settings import Settings

ALWAYS: Final = frozenset({"admin.health", "admin.ready"})
"""What is answered while nothing else is."""
_log: Final = logging.getLogger("everstep.doors")


class Api:
    """`/v1` of one engine."""

    def __init__(self, desk: Desk, *, settings: Settings, version: str, incarnation: str = "") -> None:
        self._back = Backing(desk=desk, settings=settings, version=version, incarnation=incarnation)
        self._hub = Hub(self._back)

    async def handle(self, request: Request) -> Response:
        """One request, one reply; a refusal is a reply too."""
        try:
            found = match(request.method, request.path)
            return await HANDLERS[found.route.handler](self._back, self._admit(found, request))
        except EverstepError as error:
            return refused(error)
        except NotJson as error:
            return refused(Validation(f"a value cannot be kept: {error}"))
        except Exception:  # noqa: BLE001 -- a bug of ours must not take the door with it
            _log.exception("%s %s failed", request.method, request.path)
            return refused(EverstepError("something went wrong inside; the log has the details"))

    async def watch(self, request: Request) -> Watch:
        """One watcher more. Everything is checked before: where there is no stream, an EverstepError comes."""
        found = match(request.method, request.path)
        if not found.route.streams:
            raise Validation("there is no stream at this path")
        return await WATCHES[found.route.handler](self._back, self._hub, self._admit(found, request))

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The same as lines; close it when you leave."""
        watch = await self.watch(request)
        async with aclosing(watch.frames()) as frames:
            async for frame in frames:
                yield frame.line

    def streams(self, request: Request) -> bool:
        """Whether a door that can do both answers this with frames: an event path, unless a page is asked for."""
        try:
            route = match(request.method, request.path).route
        except EverstepError:
            return False
        paged = request.headers.get("accept") == "application/json" or {"limit", "wait"} & request.query.keys()
        return route.streams and not paged

    def close(self) -> None:
        """Say good-bye to every stream."""
        self._hub.close()

    def _admit(self, found: Match, request: Request) -> Asked:
        """Nothing is taken while the gate is closed, and nothing unknown is ever ignored."""
        route, gate = found.route, self._back.desk.gate
        if route.handler not in ALWAYS and not gate.ready:
            raise EngineClosed(f"the engine takes no work now: {gate.reason}", what_to_do="try again in a moment")
        wrong = unknown_query(request.query, route.query)
        if wrong is not None:
            raise wrong
        body = {} if request.body is None else request.body
        if not isinstance(body, dict):
            raise Validation("the body must be a JSON object")
        unknown = unknown_fields(body, route.body | route.local if request.local else route.body)
        if unknown is not None:
            raise unknown
        return Asked(request=request, params=found.params, fields=Fields(body))


def refused(error: EverstepError) -> Response:
    """The reply to what cannot be done."""
    headers = {"content-type": MEDIA_TYPE}
    allow = error.details.get("allow")
    if isinstance(allow, list):
        headers["allow"] = ", ".join(map(str, allow))
    if error.code in RETRY_AFTER_S:
        headers["retry-after"] = str(error.details.get("retry_after_s", RETRY_AFTER_S[error.code]))
    return reply(problem(error), refusal_of(error).status, headers)
