"""The door on the settings of a project: which plans it publishes, and whom it speaks to."""

import asyncio
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from everstep.domain.errors import PlanError, StoreLocked
from everstep.doors.api import Api
from everstep.doors.api.sources import find_plan
from everstep.doors.local.client import find_engine
from everstep.doors.local.place import read_lock
from everstep.doors.mcp.channel import Channel, LocalChannel, OwnChannel
from everstep.doors.mcp.desk import DoorDesk, DoorLimits
from everstep.doors.mcp.door import McpDoor
from everstep.doors.mcp.http import HttpDoor
from everstep.doors.mcp.published import Book, Published
from everstep.facade.engine import Engine
from everstep.settings import Settings
from everstep.wire.plan import read_plan

PATIENCE_S: Final = 15.0
"""How long a holder that does not answer is given: one that stops lets its calls end first."""
KNOCK_S: Final = 0.05


def published_in(settings: Settings) -> list[Published]:
    """The plans that the operator's configuration publishes; raises if one cannot be read."""
    found = []
    for name, said in settings.tables("mcp.workflows").items():
        file = find_plan(name, settings.plans_dirs)
        read = read_plan(file.read_bytes(), file=str(file))
        if read.plan is None:
            raise PlanError(f"the published plan '{name}' has problems", read.problems)
        found.append(
            Published(
                plan=read.plan,
                task_support=bool(said.get("task_support")),
                continue_by=str(said.get("continue_by") or "client"),
                tool=bool(said.get("tool")),
            )
        )
    return found


def limits_in(settings: Settings) -> DoorLimits:
    """The settings of `[mcp]`."""

    def number(key: str) -> int:
        value = settings.said[f"mcp.{key}"].value
        assert isinstance(value, int)
        return value

    return DoorLimits(
        ttl_ms=number("ttl"),
        max_ttl_ms=number("max_ttl"),
        prompt_wait_s=number("prompt_wait") / 1000,
        task_after_s=number("task_after") / 1000,
        wait_s=number("wait") / 1000,
        page=number("page"),
        variables_bytes=number("variables"),
        input_responses=number("input_responses"),
        on_task_unavailable=str(settings.said["mcp.on_task_unavailable"].value),
        trust_elicitation=str(settings.said["mcp.trust_elicitation"].value),
        calls_per_owner=number("calls_per_owner"),
        streams_per_owner=number("streams_per_owner"),
        sessions_per_owner=number("sessions_per_owner"),
    )


def exposed_in(settings: Settings) -> tuple[str, ...]:
    """Tools that clients may call, beside those of published plans."""
    value = settings.said["mcp.expose"].value
    return value if isinstance(value, tuple) else ()


def now_ms() -> int:
    """The time that clients are told."""
    return time.time_ns() // 1_000_000


class Finder:
    """Whoever holds the store, or this process, which then carries everything."""

    def __init__(self, settings: Settings, tools: Iterable[object] = ()) -> None:
        self._settings = settings
        self._tools = tuple(tools)
        self._own: Engine | None = None

    async def find(self) -> Channel:
        """Somebody who answers; raises StoreLocked if the holder says nothing."""
        until = time.monotonic() + PATIENCE_S
        while True:
            if self._settings.store_path is not None and self._settings.lock_path.exists():
                client = await find_engine(self._settings)
                if client is not None:
                    await client.close()
                    holder = read_lock(self._settings.lock_path)
                    return LocalChannel(Path(str(holder.get("socket") or self._settings.socket_path)))
            engine = Engine(config=self._settings, tools=self._tools)
            try:
                await engine.open()
            except StoreLocked:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(KNOCK_S)
                continue
            self._own = engine
            return own_channel(engine, self._settings)

    @property
    def carries(self) -> bool:
        """Whether this process is the engine."""
        return self._own is not None

    async def close(self) -> None:
        """An own engine stops in order."""
        own, self._own = self._own, None
        if own is not None:
            await own.close()


def own_channel(engine: Engine, settings: Settings) -> OwnChannel:
    """`/v1` of an engine in this process."""
    return OwnChannel(Api(engine.desk, settings=settings, version=version("everstep")))


def door_of(channel: Channel, settings: Settings) -> McpDoor:
    """The door on stdio, of the plans that the settings publish."""
    return _door(channel, settings, published_in(settings), stdio=True)


def http_door(api: Api, settings: Settings) -> HttpDoor:
    """The door for `/mcp` of a served engine."""
    return HttpDoor(_door(OwnChannel(api), settings, published_in(settings), stdio=False), version("everstep"))


def engine_door(engine: Engine, published: Iterable[Published]) -> McpDoor:
    """The door on stdio, of plans that a program publishes."""
    own = own_channel(engine, engine.settings)
    return _door(own, engine.settings, published, stdio=True, owner=engine.who.owner)


def _door(
    channel: Channel, settings: Settings, published: Iterable[Published], *, stdio: bool, owner: str | None = None
) -> McpDoor:
    desk = DoorDesk(channel, Book(published, exposed_in(settings)), limits_in(settings), now_ms)
    return McpDoor(desk, owner=owner or settings.owner, stdio=stdio)
