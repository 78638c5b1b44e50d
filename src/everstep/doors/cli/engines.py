"""Who can be at the other end: this process, the process that holds the store, or nobody at all yet."""

import json
from collections.abc import AsyncIterator
from typing import Final

from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.ids import TaskId
from everstep.domain.version import __version__
from everstep.doors.api import Api, Request, split_target
from everstep.doors.cli.talk import Ask, Json, Reply
from everstep.doors.local.client import LocalClient
from everstep.doors.local.lines import refusal
from everstep.facade.desk import Desk
from everstep.facade.engine import Engine
from everstep.settings import Settings

VIA: Final = "cli"


class ApiTalk:
    """`/v1` of a desk in this process."""

    own = True

    def __init__(self, desk: Desk, settings: Settings) -> None:
        self._desk = desk
        self._who = Who(owner=settings.owner, actor=Actor(kind=ActorKind.HUMAN, id=settings.owner, via=VIA))
        self._api = Api(desk, settings=settings, version=__version__)

    async def request(self, asking: Ask) -> Reply:
        """Ask the desk."""
        response = await self._api.handle(self._request(asking))
        return Reply(status=response.status, body=response.json())

    async def stream(self, path: str) -> AsyncIterator[Json]:
        """Frames of the desk."""
        async for line in self._api.stream(self._request(Ask(method="GET", path=path))):
            yield json.loads(line)

    async def parts(self, path: str) -> AsyncIterator[str]:
        """Of the desk, as they are made."""
        response = await self._api.handle(self._request(Ask(method="GET", path=path)))
        if response.parts is None:
            raise refusal(response.json())
        async for part in response.parts:
            yield part.decode()

    def carry(self, task: str) -> None:
        """Carry it here."""
        self._desk.carry(TaskId(task))

    def _request(self, asking: Ask) -> Request:
        path, query = split_target(asking.path)
        return Request(
            method=asking.method,
            path=path,
            query=query,
            headers=asking.headers or {},
            body=asking.body,
            who=self._who,
            local=True,
        )


class OwnEngine(ApiTalk):
    """This process is the engine, until it leaves."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__(engine.desk, settings)
        self.engine = engine


async def open_own(settings: Settings, tools: tuple[object, ...], *, carries: bool) -> OwnEngine:
    """Take the store; raises StoreLocked if somebody has it."""
    engine = Engine.foreground(settings, tools=tools) if carries else Engine(config=settings, tools=tools, worker=False)
    await engine.open()
    return OwnEngine(engine, settings)


class LocalEngine:
    """The process that holds the store, at its socket."""

    own = False

    def __init__(self, client: LocalClient) -> None:
        self._client = client

    async def request(self, asking: Ask) -> Reply:
        """Ask it."""
        response = await self._client.request(asking.method, asking.path, asking.body, headers=asking.headers)
        return Reply(status=response.status, body=response.json())

    async def stream(self, path: str) -> AsyncIterator[Json]:
        """Its frames."""
        async for frame in self._client.stream(path):
            yield frame

    async def parts(self, path: str) -> AsyncIterator[str]:
        """As it makes them."""
        async for part in self._client.parts(path):
            yield part

    def carry(self, task: str) -> None:
        """It knows itself what to carry."""
