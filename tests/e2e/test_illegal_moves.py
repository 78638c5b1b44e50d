"""Moves that are not in the tables: refused through the API with the current state, and by the file itself (1.4)."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Misconfigured, Plan, Task, tool
from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.api import Api, Request
from everstep.settings import load_settings
from tests.postgres import schema

COMMANDS: dict[str, JsonObject | None] = {
    "pause": {},
    "resume": {},
    "cancel": {},
    "retry": {"from_step": "a"},
    "patch": {"base_revision": 1, "ops": [{"op": "skip", "id": "z"}]},
}
ILLEGAL = {
    "queued": {"retry"},
    "running": {"retry"},
    "pausing": {"retry"},
    "paused": {"retry"},
    "cancelling": {"pause", "resume", "retry", "patch"},
    "completed": {"pause", "resume", "cancel", "patch"},
    "failed": {"pause", "resume", "cancel", "patch"},
    "cancelled": {"pause", "resume", "retry", "patch"},
}
"""By status; a second `cancel` is the first one again. `stalled` lasts only while nobody is there to ask."""


class Scene:
    """Tools that hold or fail, and tasks in every status."""

    def __init__(self) -> None:
        self.held = asyncio.Event()
        self.release = asyncio.Event()

    def tools(self) -> list[object]:
        @tool("scene.hold")
        async def hold() -> None:
            """Wait, and must not be repeated."""
            self.held.set()
            await self.release.wait()

        @tool("scene.stay", effect="pure")
        async def stay() -> None:
            """Hold the `finally` of a cancelled task."""
            await self.release.wait()

        @tool("scene.fail", effect="pure")
        async def fail() -> None:
            """Fail."""
            raise Misconfigured("no")

        return [hold, stay, fail]

    async def task(self, engine: Engine, status: str) -> Task:
        first = {"completed": "json.pick", "failed": "scene.fail"}.get(status, "scene.hold")
        arguments: JsonObject = {"value": {"a": 1}, "pointer": "/a"} if first == "json.pick" else {}
        steps: list[JsonValue] = [{"id": "a", "tool": first, "with": arguments}]
        steps.append({"id": "z", "tool": "json.pick", "with": {"value": {"a": 1}, "pointer": "/a"}})
        final: list[JsonValue] = [{"id": "f", "tool": "scene.stay"}] if status == "cancelling" else []
        task = await engine.start(Plan.from_dict({"name": "p", "steps": steps, "finally": final}))
        if first == "scene.hold" and status != "queued":
            await self.held.wait()
        if status in ("pausing", "paused"):
            await task.pause()
        if status == "paused":
            self.release.set()
        if status in ("cancelling", "cancelled"):
            await task.cancel()
        if status in ("paused", "completed", "failed", "cancelled"):
            await asyncio.wait_for(task.result(on_pause="return"), 20)
        return await task.refresh()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    made.release.set()


async def sent(engine: Engine, task: Task, command: str) -> tuple[int, dict[str, Any]]:
    api = Api(engine.desk, settings=load_settings({}, env={}), version="1", incarnation="w")
    method, word = ("PATCH", "plan") if command == "patch" else ("POST", command)
    path, body = f"/v1/tasks/{task.id}/{word}", COMMANDS[command]
    response = await api.handle(
        Request(method=method, path=path, query={}, headers={}, body=body, who=engine.who, local=True)
    )
    said: dict[str, Any] = response.json()
    return response.status, said


@pytest.mark.req("1.4", "TU.1")
@pytest.mark.parametrize("status", ILLEGAL)
async def test_an_illegal_move_is_a_conflict_that_names_the_state(tmp_path: Path, scene: Scene, status: str) -> None:
    await refuses(tmp_path / "everstep.db", scene, status)


@pytest.mark.req("1.4", "TU.1")
async def test_a_shared_database_refuses_the_same() -> None:
    for status in ILLEGAL:
        scene = Scene()
        with schema() as own:
            await refuses(own, scene, status)


async def asked_for(task: Task) -> list[str]:
    """What people have brought about; the engine may go on meanwhile."""
    return [event.type async for event in task.events(follow=False) if event.actor["kind"] == "human"]


async def refuses(store: Path | str, scene: Scene, status: str) -> None:
    """Every command that this status does not allow: nothing changes, and not one event is written."""
    config: JsonObject = {"engine.tasks": 1}
    async with Engine(store, tools=scene.tools(), config=config) as engine:
        if status == "queued":
            await scene.task(engine, "running")
        task = await scene.task(engine, status)
        assert task.status == status
        before = await asked_for(task)
        for command in sorted(ILLEGAL[status]):
            code, said = await sent(engine, task, command)
            assert (command, code) == (command, 409)
            assert status in (said["error"]["details"].get("status"), said["error"]["message"].split()[-1])
            assert (await task.refresh()).status == status
        assert await asked_for(task) == before
        scene.release.set()


@pytest.mark.req("1.4")
async def test_the_file_itself_refuses_other_words(tmp_path: Path, scene: Scene) -> None:
    store = tmp_path / "everstep.db"
    async with Engine(store, tools=scene.tools()) as engine:
        await scene.task(engine, "completed")
    connection = sqlite3.connect(store)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE tasks SET status = 'waiting'")
    with pytest.raises(sqlite3.OperationalError, match="view"):
        connection.execute("UPDATE task_executions SET status = 'waiting'")
    rows = connection.execute("SELECT DISTINCT status FROM task_executions").fetchall()
    connection.close()
    assert rows == [("completed",)]
