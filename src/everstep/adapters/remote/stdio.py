"""A server that is a program of ours: behind walls, spoken to by lines. Lines that are no messages are passed over."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from everstep.adapters.isolation.child import Child, Ended, Program
from everstep.adapters.remote.link import FRAME_BYTES, Broken, Heard, Lost, read, spelled
from everstep.domain.values import JsonObject
from everstep.ports.tool import Denied

SHOWN_CHARS = 300


@dataclass
class StdioLink:
    """One life of the program."""

    program: Program
    tool: str
    """What it is called in a refusal: `mcp.NAME`."""
    version: str = ""
    noise: int = 0
    """Lines that were no messages."""
    _child: Child | None = None
    _running: "asyncio.Task[Ended] | None" = None
    _line: bytearray = field(default_factory=bytearray)
    _closing: bool = False

    @property
    def containment(self) -> JsonObject | None:
        """As it was built."""
        return None if self._child is None else self._child.held()

    async def open(self, heard: Heard, lost: Lost) -> None:
        """Start it."""

        def ended(running: "asyncio.Task[Ended]") -> None:
            if not self._closing:
                lost(self._why(running))

        self._child = Child(self.program, heard=lambda piece: self._heard(piece, heard))
        self._running = asyncio.ensure_future(self._child.run())
        self._running.add_done_callback(ended)

    async def send(self, message: JsonObject) -> None:
        """One line; whether it is read, its answer tells."""
        assert self._child is not None
        self._child.say(spelled(message) + b"\n")

    async def close(self) -> None:
        """End it, with all it started."""
        self._closing = True
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    def _heard(self, piece: bytes, heard: Heard) -> None:
        """Whole lines are messages, or nothing."""
        if self._closing:
            return
        *lines, rest = piece.split(b"\n")
        for line in lines:
            whole, self._line = self._line + line, bytearray()
            message = read(whole) if len(whole) <= FRAME_BYTES else None
            if message is not None:
                heard(message)
            elif whole.strip():
                self.noise += 1
        self._line += rest
        if len(self._line) > FRAME_BYTES and self._running is not None:
            self._line.clear()
            self._running.cancel(f"a line of more than {FRAME_BYTES} bytes")

    def _why(self, running: "asyncio.Task[Ended]") -> Broken | Denied:
        if running.cancelled():
            return Broken(f"'{self.tool}' printed a line of more than {FRAME_BYTES} bytes", code="mcp_frame")
        error = running.exception()
        if error is not None:
            return Broken(f"'{self.tool}' could not be started: {error}")
        ended = running.result()
        if ended.refused:
            return Denied(
                f"'{self.tool}' needs walls that cannot be built here: {', '.join(ended.refused)}",
                code="containment_unavailable",
                what_to_do=f'if it may run without: [containment] require = {{"{self.tool}" = "limited"}}',
            )
        said = bytes(ended.stderr.data[-SHOWN_CHARS:]).decode(errors="replace").strip()
        how = f"used too much of {ended.over[0]}" if ended.over else f"ended with exit code {ended.exit_code}"
        how = how if ended.signal is None else f"was ended by signal {ended.signal}"
        return Broken(f"'{self.tool}' {how}{': ' + said if said else ''}")
