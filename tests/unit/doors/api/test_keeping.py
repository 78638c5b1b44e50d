"""Lists, deletion, keys, artifacts, workers, plans and health of tools through the api."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everstep import tool
from everstep.domain.values import JsonValue
from everstep.ports.tool import Health
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools

ASK: dict[str, JsonValue] = {"name": "ask", "steps": [{"id": "a", "tool": "ask", "with": {"question": "Which?"}}]}
BIG: dict[str, JsonValue] = {
    "name": "big",
    "steps": [{"id": "a", "tool": "test.echo", "with": {"value": "x" * 40_000}}],
    "outputs": {"all": "${a}"},
}


@tool("test.well", effect="pure", health=lambda: Health(status="healthy", latency_s=0.1, detail="fine"))
def well() -> int:
    """Can be used."""
    return 1


def broken() -> Health:
    raise OSError("no way")


@tool("test.ill", effect="pure", health=broken)
def ill() -> int:
    """Cannot be used."""
    return 1


@tool("test.breaks", effect="pure", retry=0)
def breaks() -> int:
    """Never works."""
    raise ValueError("no")


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def window(tools: Tools) -> AsyncIterator[Window]:
    async with TestEngine([*tools.all(), well, ill, breaks]) as engine:
        yield Window(engine)
        tools.release.set()


async def done(window: Window, plan: dict[str, JsonValue] | None = None, **headers: Any) -> str:
    task = await window.good("POST", "/v1/tasks", {"plan": plan or ECHO}, **headers)
    await window.engine.clock.advance("1s")
    return str(task["id"])


# --- lists ---


async def listed(window: Window, query: str) -> list[str]:
    return [item["id"] for item in (await window.good("GET", f"/v1/tasks?{query}"))["items"]]


async def test_lists_are_sorted_and_filtered(window: Window) -> None:
    first = await done(window)
    asks = await done(window, ASK)
    runs = await done(window, HOLD)
    assert await listed(window, "") == [runs, asks, first]
    assert await listed(window, "sort=created_at") == [first, asks, runs]
    await window.good("PATCH", f"/v1/tasks/{first}", {"title": "later"})
    assert (await listed(window, "sort=-updated_at"))[0] == first
    assert await listed(window, "needs_you=1") == [asks]
    await window.good("POST", f"/v1/tasks/{runs}/pause", {})
    assert await listed(window, "needs_you=1") == [asks]
    fork = await window.good("POST", f"/v1/tasks/{first}/fork", {"from_step": "a"})
    assert await listed(window, f"parent={first}") == [fork["id"]]
    assert await listed(window, "parent=t_00000000000000000000000000") == []
    when = (await window.good("GET", f"/v1/tasks/{asks}"))["created_at"]
    assert await listed(window, f"until={when}") == [first]
    for wrong in ("sort=title", "needs_you=maybe", "until=soon", "cursor=abc"):
        assert codes(await window.refused("GET", f"/v1/tasks?{wrong}")) == (400, "bad_request")


@pytest.mark.parametrize("path", ["tasks", "inbox", "errors", "tasks/{task}/steps"])
async def test_an_altered_cursor_is_refused_everywhere(window: Window, path: str) -> None:
    two: dict[str, JsonValue] = {
        "name": "two",
        "steps": [{"id": name, "tool": "test.breaks", "on_error": "continue", "needs": []} for name in "ab"],
    }
    task = await done(window, two)
    await done(window, two)
    await done(window, ASK)
    await done(window, ASK)
    where = f"/v1/{path.format(task=task)}?limit=1"
    page = await window.good("GET", where)
    cursor = page["next_cursor"]
    more = await window.good("GET", f"{where}&cursor={cursor}")
    assert more["items"]
    assert more["items"][0] != page["items"][0]
    for altered in (cursor[:-1], cursor + "A", "A" + cursor, "0", "%00", cursor.swapcase()):
        assert codes(await window.refused("GET", f"{where}&cursor={altered}")) == (400, "bad_request")


async def test_the_inbox_goes_by_plan_and_on_where_it_stopped(window: Window) -> None:
    other = {**ASK, "name": "other"}
    first, second = await done(window, ASK), await done(window, other)
    assert [one["task"] for one in (await window.good("GET", "/v1/inbox?plan=other"))["items"]] == [second]
    page = await window.good("GET", "/v1/inbox?limit=1")
    assert [one["task"] for one in page["items"]] == [first]
    await window.good("POST", f"/v1/inbox/{page['items'][0]['id']}/answer", {"answer": "cancel"})
    rest = await window.good("GET", f"/v1/inbox?limit=1&cursor={page['next_cursor']}")
    assert [one["task"] for one in rest["items"]] == [second]


# --- keys ---


async def test_a_key_means_one_wish(window: Window) -> None:
    body: dict[str, JsonValue] = {"plan": ECHO, "title": "One", "labels": {"team": "blue"}, "priority": 2}
    first = await window.ask("POST", "/v1/tasks", body, idempotency_key="k1")
    again = await window.ask("POST", "/v1/tasks", body, idempotency_key="k1")
    assert (first.status, again.status, again.headers["idempotent-replay"]) == (201, 200, "true")
    assert again.json()["id"] == first.json()["id"]
    changes: list[dict[str, JsonValue]] = [{"title": "Two"}, {"labels": {}}, {"priority": 1}, {"pause_after": "a"}]
    for change in changes:
        other = await window.refused("POST", "/v1/tasks", {**body, **change}, idempotency_key="k1")
        assert codes(other) == (409, "idempotency_conflict")
    await window.good("PATCH", f"/v1/tasks/{first.json()['id']}", {"title": "Later"})
    assert (await window.ask("POST", "/v1/tasks", body, idempotency_key="k1")).status == 200
    for bad in ("", "t_x", "mt_x", "a b", "x" * 129, "ä"):
        refused = await window.refused("POST", "/v1/tasks", body, idempotency_key=bad)
        assert codes(refused) == (400, "bad_request")


async def test_a_fork_with_a_key_is_made_once(window: Window) -> None:
    task = await done(window)
    first = await window.ask("POST", f"/v1/tasks/{task}/fork", {"from_step": "a"}, idempotency_key="f1")
    again = await window.ask("POST", f"/v1/tasks/{task}/fork", {"from_step": "a"}, idempotency_key="f1")
    assert (first.status, again.status, again.headers["idempotent-replay"]) == (201, 200, "true")
    assert first.json()["id"] == again.json()["id"]


# --- deletion ---


async def test_a_task_that_has_ended_can_be_deleted_and_its_key_is_spent(window: Window) -> None:
    task = await done(window, idempotency_key="k1")
    assert codes(await window.refused("DELETE", f"/v1/tasks/{task}", who=EVE)) == (404, "not_found")
    assert codes(await window.refused("DELETE", f"/v1/tasks/{task}", if_match='"1"')) == (412, "version_conflict")
    assert (await window.ask("DELETE", f"/v1/tasks/{task}")).status == 204
    assert codes(await window.refused("GET", f"/v1/tasks/{task}")) == (404, "not_found")
    assert codes(await window.refused("DELETE", f"/v1/tasks/{task}")) == (404, "not_found")
    gone = await window.refused("POST", "/v1/tasks", {"plan": ECHO}, idempotency_key="k1")
    assert codes(gone) == (410, "gone")
    await window.engine.clock.advance("31d")
    assert (await window.ask("POST", "/v1/tasks", {"plan": ECHO}, idempotency_key="k1")).status == 201


async def test_a_task_that_lives_is_not_deleted(window: Window) -> None:
    task = await done(window, HOLD)
    assert codes(await window.refused("DELETE", f"/v1/tasks/{task}")) == (409, "illegal_state")
    assert (await window.good("GET", f"/v1/tasks/{task}"))["status"] == "running"


# --- artifacts ---


async def test_large_values_are_listed_and_downloaded_in_parts(window: Window) -> None:
    task = await done(window, BIG)
    items = (await window.good("GET", f"/v1/tasks/{task}/artifacts"))["items"]
    assert {(one["name"], one["step"]) for one in items} >= {("input", "a"), ("output", "a")} or len(items) >= 1
    one = items[0]
    path = f"/v1/tasks/{task}/artifacts/{one['digest']}"
    whole = await window.api.handle(window.request("GET", path))
    assert (whole.status, len(whole.body)) == (200, one["bytes"])
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-security-policy"] == "sandbox"
    assert whole.headers["content-disposition"] == "attachment"
    for said, first, last in (("0-9", 0, 9), ("10-", 10, one["bytes"] - 1), ("-5", one["bytes"] - 5, one["bytes"] - 1)):
        part = await window.api.handle(window.request("GET", path, range=f"bytes={said}"))
        assert part.status == 206
        assert part.headers["content-range"] == f"bytes {first}-{last}/{one['bytes']}"
        assert part.body == whole.body[first : last + 1]
    for wrong in ("bytes=9-1", "bytes=999999999-", "lines=1-2", "bytes=-", "bytes=1-2,4-5"):
        assert (await window.api.handle(window.request("GET", path, range=wrong))).status == 200
    assert codes(await window.refused("GET", path, who=EVE)) == (404, "not_found")


# --- workers, plans, tools ---


async def test_workers_are_listed(window: Window) -> None:
    await done(window, HOLD)
    (one,) = (await window.good("GET", "/v1/workers"))["items"]
    assert (one["status"], one["tasks"]) == ("live", 1)
    assert "test.echo" in one["tools"]


async def test_plans_of_the_operator_say_how_they_fared(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "brief.plan.yaml").write_text(
        "name: brief\ntitle: Brief\ninputs: {topic: {type: string}}\nsteps: [{id: a, tool: test.echo}]\n"
    )
    (tmp_path / "bad.plan.yaml").write_text("name: [")
    settings = load_settings({"plans.dirs": [str(tmp_path)]}, env={})
    async with TestEngine(tools.all()) as engine:
        window = Window(engine, settings)
        (plan,) = (await window.good("GET", "/v1/plans"))["items"]
        assert (plan["name"], plan["p50"], plan["success"], plan["last"]) == ("brief", None, None, [])
        assert plan["inputs"][0]["name"] == "topic"
        task = await window.good("POST", "/v1/tasks", {"plan_name": "brief", "inputs": {"topic": "sun"}})
        await engine.clock.advance("1s")
        one = await window.good("GET", "/v1/plans/brief")
        assert (one["success"], one["last"][0]["task"], one["p50"] >= 0) == (1.0, task["id"], True)
        assert one["plan"]["name"] == "brief"
        assert one["plan_text"].startswith("name: brief\n")
        assert (await window.good("GET", "/v1/plans/brief", who=EVE))["last"] == []
        assert (await window.good("GET", "/v1/plans/bad"))["valid"] is False
        assert codes(await window.refused("GET", "/v1/plans/none")) == (404, "not_found")


async def test_a_plan_is_listed_under_the_name_that_starts_it(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "weekly.plan.yaml").write_text("name: brief\nsteps: [{id: a, tool: test.echo}]\n")
    settings = load_settings({"plans.dirs": [str(tmp_path)]}, env={})
    async with TestEngine(tools.all()) as engine:
        window = Window(engine, settings)
        (plan,) = (await window.good("GET", "/v1/plans"))["items"]
        assert plan["name"] == "weekly"
        task = await window.good("POST", "/v1/tasks", {"plan_name": plan["name"]})
        await engine.clock.advance("1s")
        assert (await window.good("GET", "/v1/plans/weekly"))["last"][0]["task"] == task["id"]


@pytest.mark.parametrize(
    ("name", "status"), [("test.well", "healthy"), ("test.ill", "unhealthy"), ("test.echo", "unknown")]
)
async def test_a_tool_is_asked_whether_it_is_well(window: Window, name: str, status: str) -> None:
    asked = await window.good("POST", f"/v1/tools/{name}/health", {})
    assert (asked["name"], asked["health"]["status"]) == (name, status)
    assert asked["health"]["checked_at"]
    assert codes(await window.refused("POST", "/v1/tools/none/health", {})) == (404, "not_found")
