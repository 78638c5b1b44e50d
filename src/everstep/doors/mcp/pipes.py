"""Both ends of stdio, as the SDK's server reads and writes messages: one line each, without a thread in between.

The SDK's own goes to a thread for every line that it reads, and for every one that it writes.
"""

import asyncio
import os
import select
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

    from mcp.shared.message import SessionMessage

READ_BYTES: Final = 64 * 1024
LINES_MAX: Final = 256
"""Lines that are kept for who has not asked for them; the others wait in the pipe."""


class _End:
    """What both have in common."""

    async def aclose(self) -> None:
        """Nobody uses it any more."""

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Incoming(_End):
    """What the other side says, as it comes; over when it closes its end."""

    def __init__(self, source: int) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        self._read, self._message = jsonrpc_message_adapter.validate_json, SessionMessage
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []
        """Of a line whose end has not come yet."""
        self._news = asyncio.Event()
        self._over = self._listening = False
        try:
            self._listen()
        except PermissionError:  # a file: nobody waits for it
            while not self._over:
                self._readable()

    def _listen(self) -> None:
        self._loop.add_reader(self._source, self._readable)
        self._listening = True

    def _readable(self) -> None:
        try:
            said = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # a terminal that is gone
            said = b""
        if said:
            self._begun.append(said)
            if b"\n" not in said:
                return
            *whole, rest = b"".join(self._begun).split(b"\n")
            self._begun = [rest]
            self._lines.extend(whole)
            if len(self._lines) > LINES_MAX:
                self._stop()
        else:
            self._over = True
            self._stop()
            self._lines.extend(filter(None, [b"".join(self._begun)]))
        self._news.set()

    async def receive(self) -> "SessionMessage | Exception":
        """The next message; what is none is an error that the server looks at."""
        from anyio import EndOfStream

        try:
            return await anext(self)
        except StopAsyncIteration:
            raise EndOfStream from None

    def __aiter__(self) -> "Self":
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        while not self._lines:
            if self._over:
                raise StopAsyncIteration
            self._news.clear()
            if not self._listening:
                self._listen()
            await self._news.wait()
        try:
            return self._message(self._read(self._lines.popleft().decode(errors="replace"), by_name=False))
        except ValueError as error:
            return error

    async def aclose(self) -> None:
        """Listen no more."""
        self._stop()

    def _stop(self) -> None:
        if self._listening:
            self._loop.remove_reader(self._source)
            self._listening = False


class Outgoing(_End):
    """What is said to the other side, in order. Whatever does not fit at once waits in a thread: it may read slowly."""

    def __init__(self, wire: int) -> None:
        self._wire = wire
        self._room = select.poll()
        self._room.register(wire, select.POLLOUT)
        self._waiting: list[bytes] = []
        self._writing: asyncio.Task[None] | None = None

    async def send(self, item: "SessionMessage", /) -> None:
        """One message; it is written whole even if nobody waits for that any more."""
        from anyio import BrokenResourceError

        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            if self._writing is None and len(line) <= select.PIPE_BUF and self._room.poll(0):
                line = line[os.write(self._wire, line) :]
            if line:
                self._waiting.append(line)
                self._writing = self._writing or asyncio.create_task(self._write())
                await asyncio.shield(self._writing)
        except OSError as error:
            raise BrokenResourceError from error

    async def _write(self) -> None:
        try:
            while self._waiting:
                lines, self._waiting = b"".join(self._waiting), []
                await asyncio.to_thread(self._write_whole, lines)
        finally:
            self._writing = None

    def _write_whole(self, lines: bytes) -> None:
        while lines:
            lines = lines[os.write(self._wire, lines) :]

    async def aclose(self) -> None:
        """When all is written."""
        if self._writing is not None:
            with suppress(OSError):
                await asyncio.shield(self._writing)
