"""The side that answers: a socket. Whoever talks with callers is loaded when the first one comes."""

import asyncio
from contextlib import suppress
from typing import Protocol

from everstep.doors.local.place import LINE_BYTES_MAX, announce, bind, make_private, read_lock
from everstep.facade.desk import Desk
from everstep.settings import Settings


class Hosting(Protocol):
    """What the door needs of `host.Host`, which brings the whole of `/v1` with it."""

    def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    async def close(self) -> None: ...


async def open_door(desk: Desk, settings: Settings) -> "LocalDoor":
    """Answer on the store's socket; the lock file says where that is."""
    door = LocalDoor(desk, settings)
    await door.open()
    return door


class LocalDoor:
    """A socket, and who is on it. Most engines never see a caller."""

    def __init__(self, desk: Desk, settings: Settings) -> None:
        self._desk = desk
        self._settings = settings
        self.path = settings.socket_path
        self._server: asyncio.Server | None = None
        self._host: Hosting | None = None
        self._incarnation = str(read_lock(settings.lock_path).get("incarnation") or "")

    async def open(self) -> None:
        """Take callers. An older socket of that name is a dead engine's, since the store is ours."""
        settings = self._settings
        if self.path.parent == settings.runtime:
            make_private(settings.runtime)
        sock = bind(self.path)
        self._server = await asyncio.start_unix_server(self._welcome, sock=sock, limit=LINE_BYTES_MAX)
        announce(settings.lock_path, socket=str(self.path))

    async def close(self) -> None:
        """Take no more callers; those who watch hear good-bye. Closing twice is harmless."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        with suppress(FileNotFoundError):
            self.path.unlink()
        if self._host is not None:
            await self._host.close()

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            return writer.close()
        if self._host is None:
            from everstep.doors.local.host import Host

            self._host = Host(self._desk, self._settings, self._incarnation)
        return self._host.welcome(reader, writer)
