"""The local door: `/v1` as JSON Lines on a socket beside the store, for the same user only, without a token.

    {"method", "path", "headers", "body"}  ->  {"status", "headers", "body"}

One line each; event paths answer with frames instead, until the task ends or somebody hangs up. Whoever holds the
store opens the door, so a second terminal can watch, pause and answer what the first one started. The other side of
it, `LocalClient`, stands here too: one spelling, one file.
"""

import asyncio
import json
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

from everstep.domain.errors import EverstepError, LimitExceeded, Unavailable, Validation
from everstep.domain.events import Actor, ActorKind
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue, NotJson
from everstep.doors.api import Api, Request, Response, split_target
from everstep.doors.api.context import Listen
from everstep.doors.api.front import refused
from everstep.facade.desk import Desk, Who
from everstep.settings import Settings
from everstep.wire.values import loads_strict

LINE_BYTES_MAX: Final = 2 * 1024 * 1024
"""A body of 1 MiB, with room for its envelope."""
REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
CALLERS_MAX: Final = 256
CONNECT_S: Final = 1.0
LEAVE_S: Final = 1.0
"""How long callers have to hear good-bye."""

ACTOR: Final = "everstep-actor"
_KINDS: Final = {kind.value: kind for kind in (ActorKind.HUMAN, ActorKind.LLM, ActorKind.SERVICE)}
_VIAS: Final = ("cli", "http", "mcp", "python")


async def open_door(desk: Desk, settings: Settings, *, listen: Listen | None = None) -> "LocalDoor":
    """Answer on the store's socket; the lock file says where that is. `listen`: where progress can be heard."""
    holder = read_lock(settings.lock_path)
    api = Api(
        desk,
        settings=settings,
        version=version("everstep"),
        incarnation=str(holder.get("incarnation") or ""),
        listen=listen,
    )
    door = LocalDoor(api, settings)
    await door.open()
    return door


class LocalDoor:
    """A socket, and who is on it."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._owner = settings.owner
        self._lock_path = settings.lock_path
        self._runtime = settings.runtime
        self.path = settings.socket_path
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()
        self._silent: set[asyncio.Task[None]] = set()
        """Callers who are not waiting for an answer."""

    async def open(self) -> None:
        """Take callers. An older socket of that name is a dead engine's, since the store is ours."""
        if self.path.parent == self._runtime:
            make_private(self._runtime)
        sock = bind(self.path)
        self._server = await asyncio.start_unix_server(self._welcome, sock=sock, limit=LINE_BYTES_MAX)
        announce(self._lock_path, self.path)

    async def close(self) -> None:
        """Take no more callers; those who watch hear good-bye. Closing twice is harmless."""
        server, self._server = self._server, None
        if server is None:
            return
        self._api.close()
        server.close()
        with suppress(FileNotFoundError):
            self.path.unlink()
        for caller in self._silent:
            caller.cancel()
        if self._callers:
            await asyncio.wait(self._callers, timeout=LEAVE_S)
        for caller in self._callers:
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = asyncio.create_task(self._serve(reader, writer))
        self._callers.add(caller)
        caller.add_done_callback(self._callers.discard)

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
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests one after the other, until the caller hangs up or wants to watch."""
        while self._server is not None:
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
            writer.write(envelope(await self._api.handle(request)))
            await writer.drain()

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
        leaving = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait((showing, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (showing, leaving):
                task.cancel()
            await asyncio.gather(showing, leaving, return_exceptions=True)

    async def _frames(self, request: Request, writer: asyncio.StreamWriter) -> None:
        try:
            async with aclosing(cast("Any", self._api.stream(request))) as frames:  # an async generator
                async for frame in frames:
                    writer.write(frame)
                    await writer.drain()
        except EverstepError as error:
            writer.write(envelope(refused(error)))


# --- lines ---


def read_request(line: bytes, owner: str) -> Request:
    """A request from its line; raises Validation."""
    try:
        said = loads_strict(line, bytes_max=LINE_BYTES_MAX)
    except NotJson as error:
        raise Validation(f"not a request: {error}") from None
    if not isinstance(said, dict) or not isinstance(said.get("path"), str) or not isinstance(said.get("method"), str):
        raise Validation('a request is {"method", "path", "headers", "body"}')
    given = said.get("headers") or {}
    if not isinstance(given, dict):
        raise Validation("'headers' must be an object")
    headers = {name.lower(): str(value) for name, value in given.items()}
    path, query = split_target(str(said["path"]))
    return Request(
        method=str(said["method"]),
        path=path,
        query=query,
        headers=headers,
        body=said.get("body"),
        who=Who(owner=owner, actor=actor_of(headers.get(ACTOR), owner)),
        local=True,
    )


def actor_of(said: str | None, owner: str) -> Actor:
    """Who acts: the owner at a terminal, unless `KIND:ID@VIA` says otherwise; raises Validation."""
    if not said:
        return Actor(kind=ActorKind.HUMAN, id=owner, via="cli")
    kind, _, rest = said.partition(":")
    name, at, via = rest.rpartition("@")
    if not at or via not in _VIAS:
        name, via = rest, "cli"
    if kind not in _KINDS or len(name) > 128 or not name.isprintable():
        raise Validation(f"'{ACTOR}' must be KIND:ID@VIA, of which KIND is one of {', '.join(_KINDS)}")
    return Actor(kind=_KINDS[kind], id=name or owner, via=via)


def envelope(response: Response) -> bytes:
    """A reply as its line."""
    headers = json.dumps(dict(response.headers)).encode()
    return b'{"status":%d,"headers":%s,"body":%s}\n' % (response.status, headers, response.body or b"null")


# --- the socket and the lock ---


def bind(path: Path) -> socket.socket:
    """A socket only this user can reach, from its first moment on: it is given its name after its mode."""
    unnamed = path.with_name(f".{os.getpid():x}.sock")
    unnamed.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(unnamed))
        unnamed.chmod(0o600)
        unnamed.replace(path)
    except OSError as error:
        sock.close()
        raise Unavailable(f"cannot open the local door {path}: {error.strerror}") from error
    return sock


def make_private(folder: Path) -> None:
    """Make a folder that only we can enter; one that is there must be so already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Unavailable(f"{folder} is not a folder of our own", what_to_do=f"remove it: rm -r {folder}")


def same_user(writer: asyncio.StreamWriter) -> bool:
    """Whether the process at the other end is ours. Where the system does not tell, the file's mode must do."""
    sock = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    layout = "3i"
    _pid, user, _group = struct.unpack(
        layout, sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
    )
    return bool(user == os.geteuid())


def read_lock(path: Path) -> JsonObject:
    """What the holder of a store says of itself; without a lock it means nothing."""
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def announce(lock: Path, door: Path) -> None:
    """Say in the lock file where the door is. The lock itself is not touched: it is on the file, not on its text."""
    said = read_lock(lock)
    if said:
        text = json.dumps({**said, "socket": str(door)}).encode()
        with lock.open("r+b") as file:
            file.write(text)
            file.truncate()


# --- the other side ---


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
            body=b"" if said["body"] is None else _spelled(said["body"]),
        )

    async def stream(self, path: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[dict[str, Any]]:
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
            connected.writer.close()

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
            connected.writer.close()
            with suppress(ConnectionError):
                await connected.writer.wait_closed()

    def _line(self, method: str, path: str, body: JsonValue, headers: Mapping[str, str] | None) -> bytes:
        said: JsonObject = {
            "method": method,
            "path": path,
            "headers": {**self._headers, **(headers or {})},
            "body": body,
        }
        return _spelled(said) + b"\n"


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


def refusal(body: Mapping[str, Any]) -> EverstepError:
    """A refusal as what it was on the other side."""
    error = body.get("error") or {}
    return EverstepError(
        str(error.get("message") or "refused"),
        code=error.get("code"),
        what_to_do=error.get("what_to_do"),
        details=error.get("details"),
    )


def _spelled(value: JsonValue) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _gone(path: Path) -> Unavailable:
    return Unavailable(f"nobody answers at {path}")
