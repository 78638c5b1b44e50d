"""The side that asks."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from everstep.domain.errors import EverstepError, Unavailable
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.api import Response
from everstep.doors.local.lines import ACTOR, hang_up, refusal, spelled
from everstep.doors.local.place import read_lock, same_user
from everstep.settings import Settings

REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
CONNECT_S: Final = 1.0


@record
class Connected:
    """Both directions of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class LocalClient:
    """Speaks to the engine behind a socket. Requests go one after the other; every stream has its own connection."""

    def __init__(self, path: Path, *, actor: str | None = None) -> None:
        self._path = path
        self._headers = {} if actor is None else {ACTOR: actor}
        self._connected: Connected | None = None
        self._turn = asyncio.Lock()

    async def request(
        self, method: str, path: str, body: JsonValue = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """One request, one reply; a refusal is a reply too. Raises Unavailable if nobody answers."""
        async with self._turn:
            if self._connected is None:
                self._connected = await self._connect()
            try:
                said = await self._exchange(self._connected, self._line(method, path, body, headers))
            except BaseException:
                await self._hang_up()
                raise
        return Response(
            status=int(said["status"]),
            headers=said["headers"],
            body=b"" if said["body"] is None else spelled(said["body"]),
        )

    async def stream(self, path: str, headers: Mapping[str, str] | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """Frames until the other side ends it; a refusal is raised."""
        connected = await self._connect()
        try:
            connected.writer.write(self._line("GET", path, None, headers))
            await connected.writer.drain()
            while line := await connected.reader.readline():
                frame = json.loads(line)
                if "status" in frame:
                    raise refusal(frame["body"])
                yield frame
        except (ConnectionError, ValueError) as error:
            raise _gone(self._path) from error
        finally:
            await hang_up(connected.writer)

    async def parts(self, path: str) -> AsyncGenerator[str, None]:
        """A reply that is made while it is sent; a refusal is raised."""
        connected = await self._connect()
        try:
            said = await self._exchange(connected, self._line("GET", path, None, None))
            if int(said["status"]) >= 400:
                raise refusal(said["body"])
            while (part := json.loads(await connected.reader.readline())) is not None:
                yield part
        except (ConnectionError, ValueError) as error:
            raise _gone(self._path) from error
        finally:
            await hang_up(connected.writer)

    async def close(self) -> None:
        """Hang up."""
        async with self._turn:
            await self._hang_up()

    async def _connect(self) -> Connected:
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_unix_connection(str(self._path), limit=REPLY_BYTES_MAX)
        except (OSError, TimeoutError) as error:
            raise _gone(self._path) from error
        if not same_user(writer):
            await hang_up(writer)
            raise _gone(self._path)
        return Connected(reader=reader, writer=writer)

    async def _exchange(self, connected: Connected, line: bytes) -> dict[str, Any]:
        try:
            connected.writer.write(line)
            await connected.writer.drain()
            reply = await connected.reader.readline()
            return cast("dict[str, Any]", json.loads(reply))
        except (ConnectionError, ValueError) as error:
            raise _gone(self._path) from error

    async def _hang_up(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            await hang_up(connected.writer)

    def _line(self, method: str, path: str, body: JsonValue, headers: Mapping[str, str] | None) -> bytes:
        said: JsonObject = {
            "method": method,
            "path": path,
            "headers": {**self._headers, **(headers or {})},
            "body": body,
        }
        return spelled(said) + b"\n"


async def find_engine(settings: Settings, *, actor: str | None = None) -> LocalClient | None:
    """The engine that holds this store, if it answers within a second and is the one its lock names."""
    holder = read_lock(settings.lock_path)
    client = LocalClient(Path(str(holder.get("socket") or settings.socket_path)), actor=actor)
    try:
        async with asyncio.timeout(CONNECT_S):
            health = (await client.request("GET", "/v1/health")).json()
    except (EverstepError, TimeoutError):
        return None
    if health.get("incarnation") == holder.get("incarnation"):
        return client
    await client.close()
    return None


def _gone(path: Path) -> Unavailable:
    return Unavailable(f"nobody answers at {path}")
