"""The queue through the API: places, other words about a task, how many there may be, and the halt."""

from collections.abc import AsyncIterator

import pytest

from everstep.domain.values import JsonValue
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def window(tools: Tools) -> AsyncIterator[Window]:
    async with TestEngine(tools.all(), config={"limits": {"live_tasks": 5}}) as engine:
        yield Window(engine)
        tools.release.set()


@pytest.mark.req("7.3")
async def test_a_queued_task_shows_its_place(window: Window) -> None:
    await window.good("PUT", "/v1/halt", {"on": True})
    tasks = [await window.start(HOLD, priority=priority) for priority in (2, 1, 0)]
    shown = [await window.good("GET", f"/v1/tasks/{task['id']}") for task in tasks]
    assert [task["queue"] for task in shown] == [{"position": place, "wait_s": None} for place in (3, 2, 1)]
    path = f"/v1/tasks/{tasks[0]['id']}"
    await window.good("PATCH", path, {"priority": 0})
    assert (await window.good("GET", path))["queue"]["position"] == 1, "the older of two equals"


async def test_title_labels_and_priority_can_be_changed_and_no_change_is_no_event(window: Window) -> None:
    task = await window.start(HOLD)
    path = f"/v1/tasks/{task['id']}"
    wanted: dict[str, JsonValue] = {"title": "Another", "labels": {"team": "blue"}, "priority": 3}
    changed = await window.good("PATCH", path, wanted)
    assert {name: changed[name] for name in wanted} == wanted
    assert (await window.good("PATCH", path, wanted))["seq"] == changed["seq"]
    (event,) = [
        event for event in (await window.good("GET", f"{path}/events"))["events"] if event["type"] == "task.updated"
    ]
    assert event["data"] == {"changes": wanted}
    listed = await window.good("GET", "/v1/tasks?label=team:blue&tool=test.hold")
    assert [item["title"] for item in listed["items"]] == ["Another"]
    wrongs: list[JsonValue] = [{"priority": 4}, {"priority": "high"}, {"title": " "}, {"labels": {"a": 1}}]
    for wrong in wrongs:
        assert codes(await window.refused("PATCH", path, wrong)) == (400, "bad_request")
    for query in ("label=x", "reason=whim"):
        assert codes(await window.refused("GET", f"/v1/tasks?{query}")) == (400, "bad_request")
    assert codes(await window.refused("PATCH", path, {"owner": "ben"})) == (422, "unknown_field")


async def test_an_ended_task_has_no_priority_to_change(window: Window, tools: Tools) -> None:
    tools.release.set()
    task = await window.start(HOLD)
    await window.engine.clock.advance("1s")
    path = f"/v1/tasks/{task['id']}"
    assert codes(await window.refused("PATCH", path, {"priority": 0})) == (409, "task_terminal")
    assert (await window.good("PATCH", path, {"title": "Done"}))["title"] == "Done"


async def test_how_long_it_may_stay_paused_can_be_said_later(window: Window) -> None:
    path = f"/v1/tasks/{(await window.start(HOLD))['id']}"
    await window.good("PATCH", path, {"pause_timeout": 60})
    await window.good("POST", f"{path}/pause", {"mode": "immediate"})
    await window.engine.clock.advance("59s")
    assert (await window.good("GET", path))["status"] == "paused"
    await window.engine.clock.advance("2s")
    assert (await window.good("GET", path))["status"] == "cancelled"
    assert codes(await window.refused("PATCH", path, {"pause_timeout": 5})) == (409, "task_terminal")
    other = f"/v1/tasks/{(await window.start(HOLD))['id']}"
    assert codes(await window.refused("PATCH", other, {"pause_timeout": -1}))[0] in (400, 422)


async def test_tasks_are_found_by_why_they_wait(window: Window) -> None:
    task = await window.start(HOLD)
    await window.good("POST", f"/v1/tasks/{task['id']}/pause", {"mode": "immediate"})
    await window.engine.clock.advance("1s")
    await window.start(HOLD)
    listed = await window.good("GET", "/v1/tasks?reason=userRequested")
    assert [item["id"] for item in listed["items"]] == [task["id"]]


async def test_everything_can_be_halted_and_health_says_who_did_it(window: Window, tools: Tools) -> None:
    halted = await window.good("PUT", "/v1/halt", {"on": True, "mode": "immediate", "note": "drill"})
    assert (halted["halt"]["mode"], halted["halt"]["note"]) == ("immediate", "drill")
    assert (await window.good("GET", "/v1/health"))["halt"] == halted["halt"]
    assert await window.good("PUT", "/v1/halt", {"on": True, "mode": "immediate"}) == halted, "asking twice is once"
    tools.release.set()
    task = await window.start(HOLD)
    await window.engine.clock.advance("1h")
    path = f"/v1/tasks/{task['id']}"
    shown = await window.good("GET", path)
    assert (shown["status"], shown["explain"]["waiting_on"]["kind"]) == ("queued", "halt")
    assert "everstep resume --all" in shown["explain"]["text"]
    assert await window.good("PUT", "/v1/halt", {"on": False}) == {"halt": None}
    await window.engine.clock.advance("1s")
    assert (await window.good("GET", path))["status"] == "completed"
    wrongs: list[JsonValue] = [{}, {"on": "yes"}, {"on": True, "mode": "x"}]
    for wrong in wrongs:
        assert codes(await window.refused("PUT", "/v1/halt", wrong)) == (400, "bad_request")


async def test_one_task_too_many_is_refused_and_an_end_makes_room(window: Window, tools: Tools) -> None:
    for _ in range(5):
        await window.start(HOLD)
    status, error = await window.refused("POST", "/v1/tasks", {"plan": HOLD})
    assert (status, error["code"], error["details"]) == (429, "too_many_tasks", {"limit": 5})
    assert (await window.ask("POST", "/v1/tasks", {"plan": HOLD}, who=EVE)).status == 201, "of this owner only"
    tools.release.set()
    await window.engine.clock.advance("1s")
    await window.start(HOLD)
