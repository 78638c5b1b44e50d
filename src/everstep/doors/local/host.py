"""Who is at the door: requests one after the other, or frames until there are no more."""

import asyncio
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final, cast

from everstep.domain.errors import EverstepError, LimitExceeded
from everstep.domain.version import __version__
from everstep.doors.api import Api, Request
from everstep.doors.api.front import refused
from everstep.doors.local.lines import envelope, hang_up, read_request, spelled
from everstep.doors.local.place import LINE_BYTES_MAX, same_user
from everstep.facade.desk import Desk
from everstep.settings import Settings

CALLERS_MAX: Final = 256
LEAVE_S: Final = 0.5
"""How long callers have to hear good-bye."""


class Host:
    """Talks with whoever comes in."""

    def __init__(self, desk: Desk, settings: Settings, incarnation: str) -> None:
        self._api = Api(desk, settings=settings, version=__version__, incarnation=incarnation)
        self._owner = settings.owner
        self._open = True
        self._callers: set[asyncio.Task[None]] = set()
        self._silent: set[asyncio.Task[None]] = set()
        """Callers who are not waiting for an answer."""

    def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One more caller."""
        caller = asyncio.create_task(self._serve(reader, writer))
        self._callers.add(caller)
        caller.add_done_callback(self._callers.discard)

    async def close(self) -> None:
        """Those who watch hear good-bye."""
        self._open = False
        self._api.close()
        for caller in self._silent:
            caller.cancel()
        if self._callers:
            await asyncio.wait(self._callers, timeout=LEAVE_S)
        for caller in self._callers:
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not same_user(writer):
                return
            if len(self._callers) > CALLERS_MAX:
                writer.write(envelope(refused(EverstepError("too many callers", code="overloaded"))))
                return
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            await hang_up(writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests one after the other, until the caller hangs up or wants to watch."""
        while self._open:
            try:
                line = await self._listen(reader)
            except ValueError:
                too_long = LimitExceeded(f"a request has more than {LINE_BYTES_MAX} bytes", what_to_do="send less")
                writer.write(envelope(refused(too_long)))
                return
            if not line:
                return
            try:
                request = read_request(line, self._owner)
            except EverstepError as error:
                writer.write(envelope(refused(error)))
                continue
            if self._api.streams(request):
                await self._show(request, reader, writer)
                return
            response = await self._api.handle(request)
            writer.write(envelope(response))
            await writer.drain()
            if response.parts is not None:
                await _send_parts(response.parts, writer)

    async def _listen(self, reader: asyncio.StreamReader) -> bytes:
        caller = cast("asyncio.Task[None]", asyncio.current_task())
        self._silent.add(caller)
        try:
            return await reader.readline()
        finally:
            self._silent.discard(caller)

    async def _show(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Frames until there are no more, or the caller has hung up."""
        showing = asyncio.create_task(self._frames(request, writer))
        leaving = asyncio.create_task(_hung_up(reader))
        try:
            await asyncio.wait((showing, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (showing, leaving):
                task.cancel()
            await asyncio.gather(showing, leaving, return_exceptions=True)

    async def _frames(self, request: Request, writer: asyncio.StreamWriter) -> None:
        try:
            async with aclosing(self._api.stream(request)) as frames:
                async for frame in frames:
                    writer.write(frame)
                    await writer.drain()
        except EverstepError as error:
            writer.write(envelope(refused(error)))


async def _send_parts(parts: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    """What follows a reply: its pieces as texts, a line each, then null."""
    decode = getincrementaldecoder("utf-8")().decode
    async for part in parts:
        if text := decode(part):
            writer.write(spelled(text) + b"\n")
            await writer.drain()
    writer.write(b"null\n")
    await writer.drain()


async def _hung_up(reader: asyncio.StreamReader) -> None:
    """Return when the other side has gone; what it says meanwhile means nothing."""
    while await reader.read(LINE_BYTES_MAX):
        pass
