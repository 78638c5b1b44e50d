"""A server behind our proxy: the same tools, prompts and resources, its definitions pinned at the first contact."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

from everstep.adapters.remote.link import Link
from everstep.adapters.remote.over_http import HttpLink
from everstep.adapters.remote.pins import Pins, definition_of, digest_of
from everstep.adapters.remote.plain import PlainLink
from everstep.adapters.remote.server import RemoteServer
from everstep.adapters.tools.mcp import McpTools, Offer
from everstep.adapters.tools.mcp_servers import client_of, pins_of
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import ToolError
from everstep.settings import Settings

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
"""Tools that can be steps; a server may call others what it likes, but nobody here can write it down."""
START_S: Final = 120.0
"""Whoever started the proxy loses patience first; a package may have to be fetched before it can answer."""
LISTS: Final = ("tools", "prompts", "resources")


class Proxied:
    """One server, and what it offers."""

    def __init__(self, settings: Settings, name: str, argv: tuple[str, ...], url: str) -> None:
        client = client_of(settings)

        def link() -> Link:
            return HttpLink(client, url) if url else PlainLink(argv, f"mcp.{name}")

        self.name = name
        self._settings = settings
        self._pins: Pins = pins_of(settings, name)
        self._server = RemoteServer(name=f"mcp.{name}", link=link, start_s=START_S)
        self.tools: list[JsonObject] = []
        """As it lists them; those that are not what they were are left out."""
        self.withheld: tuple[str, ...] = ()
        self.prompts: list[JsonObject] = []
        self.resources: list[JsonObject] = []
        self.templates: list[JsonObject] = []
        self.changed: Callable[[str], None] = lambda _list: None
        """Told when one of its lists is another."""
        self._watched: dict[str, asyncio.Event] = {}
        self._looking: set[asyncio.Task[None]] = set()
        self._server.listeners.append(self._heard)

    @property
    def greeting(self) -> JsonObject:
        """What it says of itself."""
        return self._server.greeting

    @property
    def pinned_in(self) -> str:
        """The file that keeps what was agreed to."""
        return os.path.relpath(self._pins.path)

    async def open(self) -> ToolAdapter:
        """Start it and look what there is; what it gives is a family of tools. Raises ToolErrors."""
        await self._server.ping()
        able = self.greeting.get("capabilities")
        able = able if isinstance(able, dict) else {}
        listed = {what: await self._server.listed(what) if what in able else [] for what in LISTS}
        self.prompts, self.resources = listed["prompts"], listed["resources"]
        self.templates = await self._server.listed("resourceTemplates") if "resources" in able else []
        self._agree(listed["tools"])
        return McpTools(self._server, self._offer(), self._pins, usable=lambda _schema: False)

    def has(self, what: str, more: str = "") -> bool:
        """Whether it offers anything of this kind, and that with it."""
        able = self.greeting.get("capabilities")
        kind = able.get(what) if isinstance(able, dict) else None
        return isinstance(kind, dict) and (not more or kind.get(more) is True)

    async def updates(self, uri: str) -> AsyncIterator[None]:
        """Once whenever the server says that what stands there has changed; raises ToolErrors."""
        news = self._watched.setdefault(uri, asyncio.Event())
        await self._server.request("resources/subscribe", {"uri": uri})
        while True:
            await news.wait()
            news.clear()
            yield

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Anything that is no call of a tool, passed on as it is; raises ToolErrors."""
        return await self._server.request(method, params)

    async def close(self) -> None:
        """End it."""
        for looking in self._looking:
            looking.cancel()
        await self._server.close()

    def _heard(self, method: str, said: JsonObject) -> None:
        match method.split("/"):
            case ["notifications", "resources", "updated"] if str(said.get("uri")) in self._watched:
                self._watched[str(said["uri"])].set()
            case ["notifications", what, "list_changed"] if what in LISTS:
                looking = asyncio.ensure_future(self._look_again(what))
                self._looking.add(looking)
                looking.add_done_callback(self._looking.discard)

    async def _look_again(self, what: str) -> None:
        """What it lists now; a tool that was not there at the start waits for the next one."""
        with suppress(ToolError):
            listed = await self._server.listed(what)
            if what == "tools":
                known = self._pins.read()
                self._agree([tool for tool in listed if tool.get("name") in known])
            elif what == "prompts":
                self.prompts = listed
            else:
                self.resources, self.templates = listed, await self._server.listed("resourceTemplates")
            self.changed(what)

    def _agree(self, listed: list[JsonObject]) -> None:
        pinned = self._pins.read()
        usable = [tool for tool in listed if NAME.fullmatch(str(tool.get("name")))]
        new = {str(tool["name"]): definition_of(tool) for tool in usable if tool["name"] not in pinned}
        if new:
            pinned |= new
            self._pins.write(pinned.values())
        same = {name: digest_of(definition) for name, definition in pinned.items()}
        self.tools = [tool for tool in usable if digest_of(definition_of(tool)) == same[str(tool["name"])]]
        kept = {tool["name"] for tool in self.tools}
        self.withheld = tuple(str(tool.get("name")) for tool in listed if tool.get("name") not in kept)

    def _offer(self) -> Offer:
        """What the operator says of a server of this name, if anything; else it asks only where the server warns."""
        said: dict[str, Any] = self._settings.tables("mcp.servers").get(self.name, {})
        effects = {key.removeprefix("effects."): Effect(str(one)) for key, one in said.items() if "effects." in key}
        return Offer(
            name=self.name,
            tools=tuple(str(tool["name"]) for tool in self.tools),
            effects=effects,
            trust_hints=bool(said.get("trust_hints")),
            asks=False,
        )
