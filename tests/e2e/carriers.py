"""The ways in which tasks are carried, each as a world for one story: a door, and whoever carries behind it.

embedded    one engine on a SQLite file, which is its own door
fleet       two engines on PostgreSQL, and a door that carries nothing
temporal    two workers of a Temporal server on PostgreSQL, and a door that carries nothing
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from everstep import Engine
from everstep.domain.values import JsonObject
from everstep.torture.checker import check
from everstep.torture.dump import dump
from tests.postgres import schema
from tests.temporal import server_address

KINDS: Final = ("embedded", "fleet", "temporal")
QUICK: Final[JsonObject] = {"heartbeat": "200ms", "stale_after": "5s", "janitor": "200ms", "shutdown_grace": "2s"}
USUAL: Final[JsonObject] = {"engine": QUICK, "retry": {"delay": "20ms"}, "pools": {"narrow": 1}}


@asynccontextmanager
async def carried(kind: str, folder: Path, tools: Sequence[object]) -> AsyncIterator[Engine]:
    """A door to tasks that are carried in this way; at the end the checker has nothing to say."""
    if kind == "embedded":
        store = folder / "everstep.db"
        async with Engine(store, tools=tools, config=USUAL) as engine:
            yield engine
        assert check(store) == []
        return
    with schema() as url:
        async with AsyncExitStack() as stack:
            config = USUAL
            if kind == "temporal":
                there: JsonObject = {"address": server_address(), "queue": f"q-{uuid4().hex}"}
                config = {**config, "engine": {**QUICK, "kind": "temporal"}, "temporal": there}
            for _ in range(2):
                await stack.enter_async_context(Engine(url, tools=tools, config=config))
            yield await stack.enter_async_context(Engine(url, tools=tools, config=config, worker=False))
        assert check(dump(url, folder / "journal.db")) == []
