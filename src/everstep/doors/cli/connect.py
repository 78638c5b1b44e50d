"""How a command finds an engine (interfaces, 2.4): the one that holds the store, or this very process.

    `server` is set    that one over HTTP, and nobody else
    lock free          this process becomes the engine, and carries only what it is told to
    lock held          whoever holds it answers on its socket, within a second, as the incarnation the lock names
    held, and silent   the command ends with `store_locked`

Whoever it is, the command speaks `/v1` to it (`talk.Connection`) and need not know.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from everstep.bootstrap import run_process
from everstep.domain.errors import EverstepError, SettingsError, StoreLocked
from everstep.domain.values import JsonValue
from everstep.doors.cli.bench import judge
from everstep.doors.cli.engines import LocalEngine, OwnEngine, open_own
from everstep.doors.cli.modules import importable, load_tools
from everstep.doors.cli.nothing import EmptyStore
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.talk import Connection
from everstep.doors.local.client import LocalClient, find_engine
from everstep.settings import Settings, load_settings
from everstep.settings.place import shown_store

if TYPE_CHECKING:
    from everstep.doors.cli.remote import RemoteEngine  # loaded only where it is used: it needs an HTTP client

PATIENCE_S: Final = 4.0
"""How long a holder may take to answer. One that ends while we knock lets go of its lock a moment later."""
KNOCK_S: Final = 0.05


class Need(Enum):
    """What a command needs an engine for."""

    JUDGE = auto()
    """Only to know the tools: no store is opened."""
    LOOK = auto()
    """To read what is stored."""
    RECORD = auto()
    """To write something down, whoever carries it later."""
    CARRY = auto()
    """To have it done, here if nobody else does it."""


class Opening:
    """The connections of one command; all are closed with it."""

    def __init__(self, session: Session, settings: Settings) -> None:
        self.session = session
        self.settings = settings
        self._own: OwnEngine | None = None
        self._client: LocalClient | None = None
        self._remote: RemoteEngine | None = None

    async def judge(self, tools: tuple[object, ...] = ()) -> Connection:
        """Somebody who knows the tools: a live engine, else a desk without a store."""
        if self.settings.server:
            return self._served()
        live = await self._live()
        if live is not None:
            return live
        load_tools(self.settings)
        return judge(self.settings, self._more(tools))

    async def remembering(self, tools: tuple[object, ...] = ()) -> Connection:
        """Somebody who knows the tools, and their history if there is a store."""
        found = await self.connect(Need.LOOK, tools)
        return await self.judge(tools) if isinstance(found, EmptyStore) else found

    async def connect(self, need: Need, tools: tuple[object, ...] = (), *, makes: bool = False) -> Connection:
        """Somebody who does what is needed; `makes` a store if there is none. Raises StoreLocked."""
        if self.settings.server:
            return self._served()
        if need is Need.JUDGE:
            return await self.judge(tools)
        until = time.monotonic() + PATIENCE_S
        while True:
            live = await self._live()
            if live is not None:
                return live
            if not makes and not _exists(self.settings):
                return EmptyStore()
            try:
                self._own = await self._become(need, tools)
            except StoreLocked as refused:
                if time.monotonic() > until:
                    raise silent(refused, self.settings) from refused
                await asyncio.sleep(KNOCK_S)
            else:
                return self._own

    def reconnect(self, task: str | None) -> Callable[[], Awaitable[Connection]]:
        """Whom to turn to when the engine one followed has gone: the next, or this process, which carries `task`."""

        async def again() -> Connection:
            connection = await self.connect(Need.CARRY)
            if task is not None:
                connection.carry(task)
            return connection

        return again

    async def _become(self, need: Need, tools: tuple[object, ...]) -> OwnEngine:
        settings = self.settings
        try:
            load_tools(settings)
        except SettingsError:
            if need is not Need.LOOK:
                raise
            settings = replace(settings, tools=())  # tools that cannot be loaded are no reason not to look
        return await open_own(settings, self._more(tools), carries=need is Need.CARRY)

    def _more(self, tools: tuple[object, ...]) -> tuple[object, ...]:
        """Functions that the project's modules do not hold already."""
        loaded = [sys.modules[name] for name in self.settings.tools if name in sys.modules]
        known = {id(value) for module in loaded for value in vars(module).values()}
        return tuple(tool for tool in tools if id(tool) not in known)

    def _served(self) -> "RemoteEngine":
        """The one that `server` names: never the file instead."""
        from everstep.doors.cli.remote import open_remote

        if self._remote is None:
            self._remote = open_remote(self.settings)
        return self._remote

    async def _live(self) -> LocalEngine | None:
        if self.settings.store_path is None or not self.settings.lock_path.exists():
            return None
        await self._hang_up()
        self._client = await find_engine(self.settings)
        return None if self._client is None else LocalEngine(self._client)

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def close(self) -> None:
        """Hang up; an own engine stops in order."""
        await self._hang_up()
        if self._remote is not None:
            await self._remote.close()
        own, self._own = self._own, None
        if own is not None:
            await own.engine.close()


Act: TypeAlias = Callable[[Connection, Session], Awaitable[int]]


def perform(need: Need, act: Act) -> int:
    """Carry out a command that needs one connection."""

    async def whole(opening: Opening) -> int:
        return await act(await opening.connect(need), opening.session)

    return perform_steps(whole)


def perform_steps(act: Callable[[Opening], Awaitable[int]]) -> int:
    """Carry out a command that connects by itself."""
    current = session()
    settings = settings_of(current)

    async def whole() -> int:
        opening = Opening(current, settings)
        try:
            return await act(opening)
        finally:
            await opening.close()

    with contextlib.redirect_stdout(sys.stderr):  # what tools print is no result
        return run_process(whole())


def settings_of(session: Session, **flags: JsonValue) -> Settings:
    """The settings, with what was said on the command line."""
    store = session.store
    if store is not None and "://" not in store:
        store = str(Path(store).absolute())
    token_file = None if session.token_file is None else str(Path(session.token_file).absolute())
    said: dict[str, JsonValue] = {"store": store, "server": session.server, "token_file": token_file}
    settings = load_settings({**said, "config": session.config, **flags})
    importable(settings)
    session.bell = settings.notify.bell
    return settings


def silent(refused: StoreLocked, settings: Settings) -> EverstepError:
    """The holder is there and says nothing."""
    who = refused.details.get("holder")
    name = f"process {who['pid']} ('{who.get('command')}')" if isinstance(who, dict) and who.get("pid") else "a process"
    return StoreLocked(
        f"cannot open the store {shown(settings)}",
        what_to_do="everstep doctor",
        details={**refused.details, "why": f"{name} holds it and does not answer"},
    )


def shown(settings: Settings) -> str:
    """The store as somebody here would name it."""
    path = settings.store_path
    if path is None:
        return shown_store(settings.store)
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def _exists(settings: Settings) -> bool:
    return settings.store_path is None or settings.store_path.exists()
