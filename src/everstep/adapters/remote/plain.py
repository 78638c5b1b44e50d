"""A server that somebody else's configuration starts: as it is, with their environment, spoken to by lines.

Whoever puts a proxy before a server wants the same server behind it; walls are for those that our configuration starts.
"""

import asyncio
import contextlib
import sys
from dataclasses import dataclass

from everstep.adapters.remote.link import FRAME_BYTES, Broken, Heard, Lost, read, spelled
from everstep.domain.values import JsonObject
from everstep.ports.tool import Misconfigured

LEAVE_S = 0.5
"""How long it may take to end once nobody speaks to it."""


@dataclass
class PlainLink:
    """One life of the program."""

    argv: tuple[str, ...]
    name: str
    version: str = ""
    containment: JsonObject | None = None
    _process: "asyncio.subprocess.Process | None" = None
    _reading: "asyncio.Task[None] | None" = None
    _closing: bool = False

    async def open(self, heard: Heard, lost: Lost) -> None:
        """Start it; what it says beside the protocol goes where ours does."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=sys.stderr.fileno(),
                limit=FRAME_BYTES,
            )
        except OSError as error:
            raise Misconfigured(
                f"'{self.argv[0]}' cannot be started: {error.strerror}", code="shell_missing"
            ) from error
        self._reading = asyncio.create_task(self._read(self._process, heard, lost))

    async def send(self, message: JsonObject) -> None:
        """One line; whether it is read, its answer tells."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(spelled(message) + b"\n")
            await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise Broken(f"'{self.name}' does not listen any more") from error

    async def close(self) -> None:
        """Nobody speaks to it any more; if that does not end it, we do."""
        self._closing = True
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await process.wait()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, process: "asyncio.subprocess.Process", heard: Heard, lost: Lost) -> None:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                message = read(line)
                if message is not None:
                    heard(message)
        except ValueError:
            lost(Broken(f"'{self.name}' printed a line of more than {FRAME_BYTES} bytes", code="mcp_frame"))
            return
        if not self._closing:
            lost(Broken(f"'{self.name}' has ended"))
