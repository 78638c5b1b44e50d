"""What a running call may leave behind before it ends: how far it has come, and what it has nearly used up."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

from everstep.domain.handles import Artifact
from everstep.domain.values import JsonObject, JsonValue


class Lasting(Protocol):
    """The part of `ctx` that is durable."""

    @property
    def cursor(self) -> JsonValue:
        """The last checkpoint of this call, made by an attempt that did not end well; None: from the beginning."""

    def checkpoint(self, cursor: JsonValue) -> Awaitable[None]:
        """Everything up to here is done and is not to be done again. To be awaited in async tools; others just call.

        It is durable when this returns, and a safe point: a call that is to stand still ends here, and goes on from
        here later. Raises where the call must not go on.
        """

    def artifact(self, name: str, data_or_path: bytes | str | Path, media_type: str | None = None) -> Artifact:
        """Bytes, or a file of the working folder, kept by content with the end of this attempt, failed ones included.

        What it gives is a handle, to be returned; without a media type the name's ending says it.
        """

    async def kept(self, handle: JsonObject) -> bytes:
        """For adapters: the bytes of an artifact that this task, or the one it comes from, has left.

        Raises `artifact_unknown` for any other: to know a digest is no right to what it names.
        """

    def nearing(self, limit: str, used: float, most: float) -> None:
        """For adapters: so much of a limit is in use. Told once per task, where it is most of it."""
