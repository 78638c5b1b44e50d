"""Lists of many tasks: every question goes through an index, and none is put together from its words."""

from pathlib import Path

import apsw
import pytest

from everstep.adapters.stores.sql.questions import _statement
from everstep.adapters.stores.sqlite.sql import sql
from everstep.domain.ids import TaskId
from everstep.domain.pauses import PauseType
from everstep.domain.states import TaskStatus
from everstep.ports.store import TaskFilter
from tests.conformance.sqlite_stage import opened, raw

FAILED = frozenset({TaskStatus.FAILED})
LIVE = frozenset({TaskStatus.RUNNING, TaskStatus.QUEUED})


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    path = tmp_path / "everstep.db"
    async with opened(path):
        return path


def plan(connection: apsw.Connection, name: str) -> str:
    text = sql(name)
    values = dict.fromkeys([word for word in NAMES if f":{word}" in text])
    return "\n".join(str(row[-1]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values))


NAMES = [
    "at",
    "num",
    "owner",
    "statuses",
    "plan_name",
    "plan_digest",
    "inputs_digest",
    "since",
    "until",
    "parent",
    "tool",
    "label",
    "labelled",
    "reason",
    "text",
    "limit",
    "needs_you",
    "paused",
    "live",
    "ended",
    "sort",
]


@pytest.mark.parametrize(
    ("which", "index"),
    [
        (TaskFilter(owner="a"), "tasks_by_owner (owner=? AND created_at<?)"),
        (TaskFilter(owner="a", text="words"), "tasks_by_owner (owner=? AND created_at<?)"),
        (TaskFilter(owner="a", sort="created_at"), "tasks_by_owner (owner=? AND created_at>?)"),
        (TaskFilter(owner="a", sort="-updated_at"), "tasks_changed (owner=? AND updated_at<?)"),
        (TaskFilter(owner="a", plan_name="p"), "tasks_by_plan (owner=? AND plan_name=? AND created_at<?)"),
        (TaskFilter(owner="a", statuses=FAILED), "tasks_ended (owner=? AND status=? AND created_at<?)"),
        (TaskFilter(owner="a", statuses=LIVE), "tasks_live (owner=?)"),
        (TaskFilter(owner="a", parent=TaskId("t_1")), "tasks_by_parent (parent=?)"),
        (TaskFilter(owner="a", reason=PauseType.TOOL_ERROR), "pauses_open"),
        (TaskFilter(owner="a", needs_you=True), "pauses_open"),
    ],
)
async def test_s6_every_list_has_its_index(store: Path, which: TaskFilter, index: str) -> None:
    with raw(store) as connection:
        found = plan(connection, _statement(which))
    assert index in found, found
    assert "SCAN tasks" not in found.replace("SCAN tasks USING COVERING INDEX", "")


@pytest.mark.parametrize("name", ["find_task_by_name", "find_task_by_prefix", "find_credential", "count_tasks"])
async def test_what_is_asked_all_the_time_scans_no_table(store: Path, name: str) -> None:
    with raw(store) as connection:
        text = sql(name)
        values = ("",) if "?" in text else {word: "" for word in ("owner", "name") if f":{word}" in text}
        found = "\n".join(str(row[-1]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values or None))
    lines = [line for line in found.splitlines() if line.startswith("SCAN tasks") and "INDEX" not in line]
    assert lines == [], found
