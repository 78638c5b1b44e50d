"""The gate with everything behind it, on an open desk: the api, its streams, MCP and the pages."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Self

from everstep.doors.api import Api
from everstep.doors.dashboard import Pages
from everstep.doors.http import Mount, Streams, make_app
from everstep.doors.local.place import read_lock
from everstep.doors.mcp.oauth import PLACE, oauth_in
from everstep.doors.mcp.opening import http_door
from everstep.doors.token_file import ensure_token
from everstep.facade.desk import Desk
from everstep.settings import Settings

LEAVE_S = 1.0
"""How long streams have to say good-bye."""


class Entrance:
    """What callers from outside meet, until it is left."""

    def __init__(self, desk: Desk, settings: Settings) -> None:
        holder = {} if settings.store_path is None else read_lock(settings.lock_path)
        incarnation = str(holder.get("incarnation") or "")
        self._api = Api(desk, settings=settings, version=version("everstep"), incarnation=incarnation)
        self._leave_mcp: Callable[[], Awaitable[None]] | None = None
        self.streams = Streams(self._api, sockets_per_token=settings.events.sockets_per_token)
        pages = Pages() if settings.serve.ui else None
        mounts = self._mounts(settings)
        self.gate = make_app(self._api, desk.access, settings, streams=self.streams, mounts=mounts, pages=pages)
        self._watch = asyncio.create_task(self.gate.watch())

    @classmethod
    async def open(cls, desk: Desk, settings: Settings) -> Self:
        """There is a token to come in with."""
        await ensure_token(settings.token_path, settings.owner, desk.access)
        return cls(desk, settings)

    async def leave(self) -> None:
        """Say good-bye to those who are inside."""
        self._api.close()
        leaving = [] if self._leave_mcp is None else [self._leave_mcp()]
        await asyncio.gather(self.gate.empty(LEAVE_S), *leaving)
        self._watch.cancel()

    def _mounts(self, settings: Settings) -> dict[str, Mount]:
        """Other doors beside `/v1`, by path."""
        if not settings.serve.mcp:
            return {}
        door = http_door(self._api, settings)
        self._leave_mcp = door.close
        oauth = oauth_in(settings)
        if oauth is None:
            return {"/mcp": Mount(app=door, scope="read")}
        mcp = Mount(app=door, scope="read", vouch=oauth.vouch, challenge=oauth.challenge)
        return {"/mcp": mcp, PLACE: Mount(app=oauth, scope=None)}
