"""Security tests by their numbers, for controls that no other file tries whole: S35, S37, S63, S64."""

import json
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from everstep import Engine, Plan, tool
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.moves import BrokenJournal
from everstep.doors.cli.words import safe
from everstep.errors import EverstepError
from everstep.ports.store import TaskFilter
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance import facts as f
from tests.unit.doors.http.visitor import visiting

FOREIGN = (
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJsb2NhbCIsImF1ZCI6Im90aGVyIn0.",
    "eyJhbGciOiJIUzI1NiJ9.eyJhdWQiOiJldmVyc3RlcCJ9.c2ln",
    "ghp_0123456789abcdefghij",
    "es_" + "A" * 43,
)
HOSTILE = (
    "gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg==",
    "!!python/object/apply:os.system ['id']",
    '{"lc":2,"type":"constructor","id":["os","system"],"kwargs":{}}',
    '{"__class__":"os.system","__reduce__":["os","system"]}',
    "[" * 5000,
    "\x00",
    '{"a":1,"a":2}',
)


@pytest.mark.parametrize("token", FOREIGN)
async def test_s35_a_token_of_somebody_else_is_no_token(token: str) -> None:
    """Whoever it was issued by, and whomever it names: only what this store issued, compared whole, lets in."""
    async with visiting() as visitor:
        for path in ("/v1/tasks", "/v1/health", "/v1/tools"):
            assert (await visitor.ask("GET", path, token=token)).status == 401


@pytest.mark.parametrize(
    "text", ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\rb", "\u202egnp.exe", "\x9b2J", "x\x00y"]
)
def test_s37_what_servers_say_of_themselves_cannot_move_a_cursor(text: str) -> None:
    """Descriptions of tools are printed by `everstep tools`; in the browser they go through S20."""
    assert not any(ord(one) < 32 or one in "\x7f\x9b\u202e" for one in safe(text))


@tool("echo.twice", effect="pure")
async def twice(n: int) -> dict[str, int]:
    return {"n": 2 * n}


async def written(path: Path) -> None:
    """A store with something in it: tasks that ended, one that asks."""
    steps: list[Any] = [{"id": name, "tool": "echo.twice", "with": {"n": 1}} for name in "ab"]
    plan = Plan.from_dict({"name": "p", "steps": steps})
    asks = Plan.from_dict({"name": "q", "steps": [{"id": "q", "tool": "ask", "with": {"question": "which?"}}]})
    async with Engine(path, tools=[twice]) as engine:
        for number in range(2):
            await (await engine.start(plan, key=f"k{number}")).result()
        await (await engine.start(asks)).result(on_pause="return")


def columns(path: Path) -> list[tuple[str, str]]:
    db = apsw.Connection(str(path))
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    filled = [name for name in tables if list(db.execute(f"SELECT 1 FROM {name} LIMIT 1"))]
    return [(table, row[1]) for table in filled for row in db.execute(f"PRAGMA table_info({table})")]


def altered(path: Path, table: str, column: str, value: str) -> None:
    """One row of it says something else; what the schema itself refuses is refused."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA foreign_keys = OFF")
    try:
        ((old,),) = db.execute(f"SELECT {column} FROM {table} ORDER BY 1 DESC LIMIT 1")
        db.execute(f"UPDATE {table} SET {column} = ?1 WHERE {column} IS ?2", (value, old))
    except (apsw.ConstraintError, apsw.MismatchError):
        pass
    finally:
        db.close()


async def seen(path: Path) -> tuple[list[str], list[str]]:
    """What the check finds, and every task as its journal tells it; or that the store refuses, in our words."""
    store = SqliteStore(path, clock=VirtualClock())
    try:
        await store.open(f.worker())
    except EverstepError as refused:
        return [refused.code], []
    try:
        found = [str(one) for one in await store.check()]
        ids = [item.id for item in (await store.list_tasks(TaskFilter(owner="local", limit=50))).items]
        told = [f"{state.id} {state.status} {state.seq} {state.done}" for state in await store.load_tasks(ids) if state]
    except (EverstepError, BrokenJournal) as refused:
        return [str(refused)], []
    finally:
        await store.close()
    return found, sorted(told)


async def test_s63_every_column_altered_once_is_detected_or_harmless(tmp_path: Path) -> None:
    """By somebody who can write the file. Harmless: every task is told as before."""
    whole = tmp_path / "whole.db"
    await written(whole)
    with apsw.Connection(str(whole)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = await seen(Path(shutil.copy(whole, tmp_path / "before.db")))
    assert before[0] == []
    noticed: set[str] = set()
    unseen: set[str] = set()
    for number, (table, column) in enumerate(columns(whole)):
        path = Path(shutil.copy(whole, tmp_path / f"{number}.db"))
        altered(path, table, column, "altered")
        found, told = await seen(path)
        if found:
            noticed.add(f"{table}.{column}")
        elif told != before[1]:
            unseen.add(f"{table}.{column}")
    assert unseen == set()
    assert {"tasks.owner", "tasks.title", "events.body"} <= noticed


@pytest.mark.parametrize("text", HOSTILE)
async def test_s64_hostile_rows_are_data_or_an_error(tmp_path: Path, text: str) -> None:
    """In the body of an event, and of a pause: nothing is executed, and what is raised is ours."""
    for table, column in (("events", "body"), ("pauses", "body"), ("tasks", "labels")):
        path = tmp_path / f"{table}.db"
        await written(path)
        altered(path, table, column, text if table != "events" else json.dumps({"data": text}))
        await seen(path)
