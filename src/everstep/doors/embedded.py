"""`engine.asgi()`: what `everstep serve` serves, as a part of somebody's own app. It checks its own tokens.

The app may be mounted before the engine is opened; until then, and after it was closed, it says that it is not ready.
"""

import asyncio

from everstep.domain.errors import EngineClosed, EverstepError
from everstep.doors.entrance import Entrance
from everstep.doors.http.answer import Receive, Scope, Send, refuse
from everstep.doors.http.gate import path_of
from everstep.facade.desk import Desk
from everstep.facade.engine import Engine


class Embedded:
    """One engine, at whatever path it is mounted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opening: asyncio.Task[Entrance] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whatever is asked below the mount."""
        if scope["type"] == "lifespan":
            return await _live(receive, send)
        try:
            entrance = await self._entrance()
        except EngineClosed:
            closed = EverstepError(
                "the engine is not open", code="not_ready", what_to_do="open it in the app's lifespan"
            )
            return await refuse(closed, scope, send)
        return await entrance.gate(relative(scope), receive, send)

    async def close(self) -> None:
        """The engine is being closed: nobody comes in, those inside are told."""
        opening, self._opening = self._opening, None
        if opening is not None:
            await (await opening).leave()

    async def _entrance(self) -> Entrance:
        desk: Desk = self._engine.desk
        if self._opening is None:
            self._opening = asyncio.create_task(Entrance.open(desk, self._engine.settings))
        return await asyncio.shield(self._opening)


def relative(scope: Scope) -> Scope:
    """Below the mount everything is as if it were at the top."""
    root, path = scope.get("root_path", ""), path_of(scope)
    if root and path.startswith(root):
        path = path[len(root) :] or "/"
    return {**scope, "path": path, "raw_path": path.encode("latin-1")}


async def _live(receive: Receive, send: Send) -> None:
    """An app of its own is told when it begins and ends; the engine is opened by whoever made it."""
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
