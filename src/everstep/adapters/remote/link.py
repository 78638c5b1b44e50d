"""A way to one MCP server, and what comes over it: one JSON object at a time, none of them larger than a frame."""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import msgspec

from everstep.domain.failure import EffectState
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolError

FRAME_BYTES: Final = 4 << 20
START_S: Final = 10.0
CALL_S: Final = 60.0

Heard: TypeAlias = Callable[[JsonObject], None]
Lost: TypeAlias = Callable[[ToolError], None]


class Link(Protocol):
    """Opened once, closed once; after it is lost, another one is made."""

    version: str
    """The revision that was agreed on."""

    async def open(self, heard: Heard, lost: Lost) -> None:
        """From now on, messages are heard; `lost` is told once, if the other side goes away by itself."""

    async def send(self, message: JsonObject) -> None:
        """Send it; raises ToolErrors. Where an answer comes along with it, it has been heard after that."""

    async def close(self) -> None:
        """Let go; nothing of it is left."""

    @property
    def containment(self) -> JsonObject | None:
        """What stands around it, if it is a program of ours."""


class Broken(ToolError):
    """The way to a server is gone. Whoever was waiting does not know whether the call was made."""

    category = "transient"

    def __init__(self, message: str, *, code: str = "mcp_broken", made: str = EffectState.UNKNOWN) -> None:
        super().__init__(message, code=code, effect_state=made)


def spelled(message: JsonObject) -> bytes:
    """One message, in one line."""
    return msgspec.json.encode(message)


def read(frame: bytes | bytearray | memoryview) -> JsonObject | None:
    """A message; None if it is none."""
    try:
        value = msgspec.json.decode(frame)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None
