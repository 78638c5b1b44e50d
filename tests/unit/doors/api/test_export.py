"""`/v1/export`: what fits, whole, in every form; nothing of another owner, nothing a spreadsheet would carry out."""

import csv
import io
import json
from typing import Any

import pytest

from everstep.domain.events import Who
from everstep.domain.values import JsonValue
from everstep.doors.api import export
from everstep.ports.tool import Transient
from tests.unit.doors.api.window import ANA, ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools


async def exported(window: Window, query: str = "", who: Who = ANA) -> str:
    response = await window.api.handle(window.request("GET", f"/v1/export?{query}", who=who))
    assert response.status == 200, response.body
    assert response.parts is not None
    return b"".join([part async for part in response.parts]).decode()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_a_table_has_the_agreed_columns_and_right_figures(window: Window, tools: Tools) -> None:
    tools.raises["x"] = [Transient("not now"), None]
    await window.start({"name": "p", "steps": [{"id": "a", "tool": "test.echo", "with": {"label": "x"}}]})
    await window.engine.clock.advance("10s")
    tools.raises["y"] = [Transient("never")]
    broken: JsonValue = [
        {"id": "a", "tool": "test.echo", "with": {"label": "y"}, "retry": {"times": 0}},
        {"id": "b", "tool": "test.echo"},
    ]
    await window.start({"name": "q", "steps": broken})
    await window.engine.clock.advance("10s")
    text = await exported(window)
    assert text.splitlines()[0] == (
        "id,title,plan,status,outcome,created_at,started_at,ended_at,duration_s,work_s,"
        "steps,completed,failed,skipped,retries,error_code"
    )
    assert text.endswith("\r\n")
    failed, done = rows(text)
    assert (done["status"], done["outcome"], done["retries"], done["completed"]) == ("completed", "success", "1", "1")
    assert 0.5 <= float(done["duration_s"]) <= 1.1
    assert float(done["work_s"]) < 0.1, "waiting is no work"
    assert [failed[name] for name in ("status", "steps", "failed", "skipped")] == ["failed", "2", "1", "1"]
    assert failed["error_code"]


@pytest.mark.parametrize("title", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", 'a "quoted", text\nof two lines'])
async def test_no_cell_is_taken_for_a_formula(window: Window, title: str) -> None:
    await window.start(ECHO, title=title)
    (row,) = rows(await exported(window))
    if title.strip()[0] in "=+-@":
        assert row["title"] == f"'{title.strip()}" or row["title"] == f"'{title}"
    else:
        assert row["title"] == title


async def test_json_holds_whole_tasks_and_lines_one_each(window: Window) -> None:
    for _ in range(3):
        await window.start(ECHO)
    await window.engine.clock.advance("1s")
    listed = [await window.good("GET", f"/v1/tasks/{row['id']}") for row in rows(await exported(window))]
    whole = json.loads(await exported(window, "format=json"))
    assert [task["id"] for task in whole] == [task["id"] for task in listed]
    assert whole[0]["outputs"] == listed[0]["outputs"]
    lines = (await exported(window, "format=jsonl")).splitlines()
    assert [json.loads(line) for line in lines] == whole
    assert json.loads(await exported(window, "format=json&status=failed")) == []


async def test_all_pages_are_in_it_and_filters_hold(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE", 2)
    for _ in range(5):
        await window.start(ECHO)
    await window.start(HOLD)
    await window.engine.clock.advance("1s")
    assert len(rows(await exported(window))) == 6
    assert {row["plan"] for row in rows(await exported(window, "plan=hold"))} == {"hold"}
    assert len(rows(await exported(window, "status=completed"))) == 5


async def test_events_by_type_and_by_what_went_wrong(window: Window, tools: Tools) -> None:
    tools.raises["x"] = [Transient("not now"), None]
    task = await window.start({"name": "p", "steps": [{"id": "a", "tool": "test.echo", "with": {"label": "x"}}]})
    await window.engine.clock.advance("10s")

    async def events(query: str) -> list[dict[str, Any]]:
        text = await exported(window, f"what=events&format=jsonl&{query}")
        return [json.loads(line) for line in text.splitlines()]

    journal = (await window.good("GET", f"/v1/tasks/{task['id']}/events?limit=500"))["events"]
    assert await events("") == journal
    assert {one["type"] for one in await events("type=attempt.,task.created")} == {
        "task.created", "attempt.started", "attempt.failed",
    }  # fmt: skip
    assert {one["type"] for one in await events("category=transient")} == {"attempt.failed", "step.retry_scheduled"}
    assert await events("code=nothing_of_the_kind") == []
    table = rows(await exported(window, "what=events"))
    assert [int(row["seq"]) for row in table] == [one["seq"] for one in journal]
    assert json.loads(table[0]["data"]) == journal[0]["data"]


async def test_nobody_exports_what_is_not_theirs(window: Window) -> None:
    await window.start(ECHO)
    assert rows(await exported(window, who=EVE)) == []
    assert await exported(window, "what=events&format=jsonl", who=EVE) == ""


@pytest.mark.parametrize(
    "query", ["what=all", "format=xml", "status=no", "category=transient", "what=events&category=x"]
)
async def test_a_wrong_question_is_refused_before_the_first_byte(window: Window, query: str) -> None:
    assert codes(await window.refused("GET", f"/v1/export?{query}")) == (400, "bad_request")
