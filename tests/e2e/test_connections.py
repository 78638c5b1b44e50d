"""How many connections a store keeps, and that none is held while a tool runs."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from everstep import Engine, Plan, Result, tool
from everstep.domain.values import JsonObject, JsonValue
from tests.postgres import schema, server_url

TASKS = 6
LOOKS = 20
POOL = range(2, 11)
QUICK: JsonObject = {"engine": {"heartbeat": "100ms", "janitor": "100ms"}}


class Stage:
    """A tool that runs until it is told to end."""

    def __init__(self) -> None:
        self.running = 0
        self.all_run = asyncio.Event()
        self.end = asyncio.Event()

    def tool(self) -> Callable[[], Awaitable[str]]:
        """A long step."""

        @tool("stage.hold", effect="pure")
        async def hold() -> str:
            self.running += 1
            if self.running == TASKS:
                self.all_run.set()
            await self.end.wait()
            return "done"

        return hold


async def begin(engine: Engine, stage: Stage) -> list[asyncio.Task[Result]]:
    """All tasks are inside their long step."""
    steps: list[JsonValue] = [{"id": "a", "tool": "stage.hold", "with": {}}]
    plan = Plan.from_dict({"name": "p", "steps": steps})
    started = [await engine.start(plan) for _ in range(TASKS)]
    await stage.all_run.wait()
    return [asyncio.create_task(task.result()) for task in started]


@pytest.mark.req("R.5")
async def test_no_transaction_stays_open_on_the_server_while_tools_run() -> None:
    stage = Stage()
    with schema() as url:
        me = f"r5_{os.getpid()}"
        async with Engine(f"{url}&application_name={me}", tools=[stage.tool()], config=QUICK) as engine:
            results = await begin(engine, stage)
            with psycopg.connect(server_url(), autocommit=True) as view:
                ((since,),) = view.execute("SELECT clock_timestamp()")
                for _ in range(LOOKS):
                    await engine.list()  # readers are at work too
                    found = view.execute(
                        "SELECT state, xact_start < %s FROM pg_stat_activity WHERE application_name = %s", (since, me)
                    ).fetchall()
                    assert len(found) in POOL
                    assert not [state for state, old in found if old], "opened before, and still open"
                    await asyncio.sleep(0.02)
            stage.end.set()
            for result in await asyncio.gather(*results):
                assert result.status == "completed"


@pytest.mark.req("R.5")
async def test_a_file_has_one_writer_and_readers_that_cannot_write(tmp_path: Path) -> None:
    stage, file = Stage(), tmp_path / "everstep.db"
    async with Engine(file, tools=[stage.tool()]) as engine:
        results = await begin(engine, stage)
        await asyncio.gather(*(engine.list() for _ in range(LOOKS)))
        ways = [way for name, way in opened() if name == str(file)]
        assert ways.count(os.O_RDWR) == 1
        assert ways.count(os.O_RDONLY) == len(ways) - 1 >= 1
        stage.end.set()
        await asyncio.gather(*results)


def opened() -> list[tuple[str, int]]:
    """Files of this process, and whether they are open to be read or written."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            said = (Path("/proc/self/fdinfo") / one.name).read_text().split()
            found.append((str(one.readlink()), int(said[said.index("flags:") + 1], 8) & os.O_ACCMODE))
    return found
