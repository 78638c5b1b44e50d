"""The one way through: every command speaks `/v1` to an engine, its own or another's, by two verbs."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from everstep.domain.errors import EverstepError
from everstep.domain.record import record
from everstep.doors.local.lines import refusal

Json: TypeAlias = dict[str, Any]


@record
class Ask:
    """A request."""

    method: str
    path: str
    body: Json | None = None
    headers: Mapping[str, str] | None = None


@record
class Reply:
    """What a request was answered with."""

    status: int
    body: Json


class Connection(Protocol):
    """Somebody who answers."""

    @property
    def own(self) -> bool:
        """Whether the engine is this process: then it carries what it is told to, until we leave."""

    async def request(self, asking: "Ask") -> Reply:
        """One request, one reply; a refusal is a reply too."""

    def stream(self, path: str) -> AsyncIterator[Json]:
        """Frames until somebody ends it."""

    def parts(self, path: str) -> AsyncIterator[str]:
        """A long reply, piece by piece; a refusal is raised."""

    def carry(self, task: str) -> None:
        """Carry a task here, if this is where tasks are carried."""


async def ask(connection: Connection, method: str, path: str, body: Json | None = None) -> Json:
    """The body of a good reply; a refusal is raised."""
    return (await asked(connection, Ask(method=method, path=path, body=body))).body


async def asked(connection: Connection, asking: Ask) -> Reply:
    """A good reply with its status; a refusal is raised."""
    reply = await connection.request(asking)
    if reply.status >= 400:
        raise refusal(reply.body)
    return reply


def path_of(*parts: str, **query: object) -> str:
    """`/v1/…` with every part and value escaped; what is None is left out."""
    path = "/".join(("/v1", *(quote(part, safe="") for part in parts)))
    given: Mapping[str, str] = {name: _text(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def gone(error: EverstepError) -> bool:
    """Whether whoever answered is not there any more, or about to leave."""
    return error.code in ("store_unavailable", "not_ready")


async def changes(connection: Connection, types: str) -> AsyncIterator[None]:
    """Once when there is something to look at, then whenever something of these types has happened to any task."""
    async for frame in connection.stream(path_of("events", types=types)):
        if frame["type"] in ("live", "event"):
            yield


async def journal(connection: Connection, task: str) -> AsyncIterator[Json]:
    """All events of a task that are there now."""
    after = 0
    while True:
        page = await ask(connection, "GET", path_of("tasks", task, "events", after=after, limit=500))
        for event in page["events"]:
            yield event
        if not page["events"] or page["next_after"] >= page["head_seq"]:
            return
        after = page["next_after"]
