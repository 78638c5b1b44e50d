"""Statements: each has a name, a use, and the index it was written for."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from everstep.adapters.stores.sql import statements as statements_file
from everstep.adapters.stores.sql.moving import TABLES
from everstep.adapters.stores.sqlite.migrate import migrate, migrations
from everstep.adapters.stores.sqlite.sql import sql, statements
from everstep.domain.ids import Instant

SHARED = Path(statements_file.__file__).parent
SQLITE = SHARED.parent / "sqlite"


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(":memory:")) as empty:
        migrate(empty, Instant(0), known=migrations(), backup=lambda _: None)
        yield empty


def plan(connection: apsw.Connection, name: str) -> list[str]:
    text = sql(name)
    values = dict.fromkeys(re.findall(r":(\w+)", text)) or (None,) * text.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


INDEXED = {
    "claim_candidates": "SCAN tasks USING INDEX tasks_claimable",
    "update_task": "SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)",
    "find_guard": "SEARCH tasks USING INDEX sqlite_autoindex_tasks_1 (id=?)",
    "find_dead": "SEARCH t USING INDEX tasks_held (worker>?)",
    "due_tasks": "SEARCH tasks USING INDEX tasks_due (due_at>? AND due_at<?)",
    "next_due": "SEARCH tasks USING INDEX tasks_due (due_at>?)",
    "list_tasks": "SEARCH tasks USING INDEX tasks_by_owner (owner=? AND created_at<?)",
    "load_tasks": "SEARCH e USING INDEX events_by_task (task=?)",
    "read_events": "SEARCH e USING INDEX events_by_task (task=? AND seq>?)",
    "list_open_pauses": "SCAN p USING INDEX pauses_open",
    "find_pause": "SEARCH p USING INDEX sqlite_autoindex_pauses_1 (id=?)",
}
UNSORTED = ("claim_candidates", "load_tasks", "read_events", "list_tasks", "due_tasks", "list_open_pauses")


@pytest.mark.parametrize("name", INDEXED)
def test_what_is_asked_often_uses_its_index(connection: apsw.Connection, name: str) -> None:
    assert INDEXED[name] in plan(connection, name)


@pytest.mark.parametrize("name", UNSORTED)
def test_what_an_index_orders_is_not_sorted_again(connection: apsw.Connection, name: str) -> None:
    assert not [line for line in plan(connection, name) if "ORDER BY" in line]


def test_every_statement_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for folder in (SHARED, SQLITE) for path in folder.glob("*.py"))
    texts = "\n".join((folder / "queries.sql").read_text(encoding="utf-8") for folder in (SHARED, SQLITE))
    parts = set(re.findall(r"^-- with: (\w+)$", texts, re.MULTILINE))
    said = set(re.findall(r'"(\w+)"', code)) | parts | {"sync_power", "sync_process"}
    said |= {f"{verb}_{table}" for table in TABLES for verb in ("copy", "fill")}
    assert sorted(set(statements()) - said) == []


def test_each_has_its_own_name_and_a_comment() -> None:
    blocks = [
        block
        for folder in (SHARED, SQLITE)
        for block in (folder / "queries.sql").read_text(encoding="utf-8").split("\n-- name: ")[1:]
    ]
    assert len(blocks) == len(statements())
    assert [block.split("\n")[0] for block in blocks if not block.split("\n")[1].startswith("-- ")] == []
