"""A served engine in this process: a real store, a real port, tools of the test's own."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from everstep import Engine
from everstep.doors.http import listen
from everstep.doors.serve import NetworkDoor
from everstep.settings import load_settings

Frame = dict[str, Any]


class Served:
    """Where one asks."""

    def __init__(self, engine: Engine, url: str, token: str) -> None:
        self.engine = engine
        self.url = url
        self.token = token
        self.http = httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=30)

    async def good(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        reply = await self.http.request(method, path, json=body, headers=headers)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    async def start(self, plan: Mapping[str, Any]) -> str:
        return str((await self.good("POST", "/v1/tasks", {"plan": dict(plan)}))["id"])

    def socket(self, path: str, *, token: str | None = None, **more: Any) -> connect:
        headers = {"authorization": f"Bearer {token or self.token}"} | more.pop("headers", {})
        return connect(
            f"ws{self.url.removeprefix('http')}{path}",
            additional_headers=headers,
            subprotocols=[Subprotocol("everstep.v1")],
            compression=None,
            proxy=None,
            **more,
        )


@asynccontextmanager
async def served(folder: Path, tools: Iterable[object] = (), **settings: Any) -> AsyncIterator[Served]:
    made = load_settings({"store": str(folder / "everstep.db"), "serve.port": 0, **settings}, cwd=folder, env={})
    door = NetworkDoor(made, listen(made.serve), testing=True)
    engine = Engine(config=made, tools=tools)
    await engine.open(door.open)
    url = (await door.ready(engine)).url
    one = Served(engine, url, made.token_path.read_text().strip())
    try:
        yield one
    finally:
        await one.http.aclose()
        door.refuse_more()
        await engine.close()
        await door.close()


async def frame(socket: ClientConnection) -> Frame:
    """The next one."""
    said: Frame = json.loads(await socket.recv())
    return said


async def until(socket: ClientConnection, kind: str) -> list[Frame]:
    """Frames up to the first of a kind."""
    seen = [await frame(socket)]
    while seen[-1]["type"] != kind:
        seen.append(await frame(socket))
    return seen
