"""Retry, fork, patch and undo through the api: asked first, refused by type, done as Python does it."""

from typing import Any

from everstep.domain.values import JsonValue
from everstep.ports.tool import Misconfigured
from tests.unit.doors.api.window import EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools

LINE: dict[str, JsonValue] = {
    "name": "line",
    "inputs": {"n": {"type": "integer", "default": 1}},
    "steps": [
        {"id": "a", "tool": "test.echo", "with": {"value": "${inputs.n}", "label": "a"}},
        {
            "id": "b",
            "tool": "test.echo",
            "with": {"value": "${a.value}", "label": "b"},
            "undo": {"tool": "test.echo", "with": {"value": "${b.value}", "label": "back"}},
        },
    ],
    "outputs": {"n": "${b.value}"},
}


async def test_retry(window: Window, tools: Tools) -> None:
    tools.raises["b"] = [Misconfigured("no"), None]
    path = f"/v1/tasks/{(await window.start(LINE))['id']}"
    failed = await window.finish(path.rpartition("/")[2])
    assert failed["actions"] == ["fork", "retry", "undo"]
    asked = await window.good("POST", f"{path}/retry", {"dry_run": True})
    assert asked == {"kept": ["a"], "again": ["b"], "repeats": []}
    assert codes(await window.refused("POST", f"{path}/retry", {"arguments": {"b": 1}})) == (400, "bad_request")
    assert codes(await window.refused("POST", f"{path}/retry", {"from_step": "x"})) == (422, "inputs_invalid")
    assert codes(await window.refused("POST", f"{path}/retry", {"from": "b"})) == (422, "unknown_field")
    response = await window.ask("POST", f"{path}/retry", {"arguments": {"b": {"value": 9}}})
    assert (response.status, response.json()["generation"]) == (202, 2)
    done = await window.finish(failed["id"])
    assert done["outputs"] == {"n": 9}
    assert codes(await window.refused("POST", f"{path}/retry", {})) == (422, "inputs_invalid")
    stale = await window.refused("POST", f"{path}/retry", {"from_step": "a"}, if_match='"1"')
    assert codes(stale) == (412, "version_conflict")
    assert codes(await window.refused("POST", f"{path}/retry", {}, who=EVE)) == (404, "not_found")


async def changes_of(window: Window, task: str) -> list[dict[str, Any]]:
    """What the journal says was changed about a task."""
    events = (await window.good("GET", f"/v1/tasks/{task}/events"))["events"]
    return [event["data"]["changes"] for event in events if event["type"] == "task.updated"]


async def test_fork(window: Window, tools: Tools) -> None:
    first = await window.finish((await window.start(LINE))["id"])
    path = f"/v1/tasks/{first['id']}/fork"
    assert codes(await window.refused("POST", path, {})) == (400, "bad_request")
    assert codes(await window.refused("POST", path, {"from_step": "b", "inputs": {"n": "x"}})) == (
        422,
        "inputs_invalid",
    )
    response = await window.ask("POST", path, {"from_step": "a", "inputs": {"n": 5}}, idempotency_key="k")
    made = response.json()
    assert (response.status, response.headers["location"]) == (201, f"/v1/tasks/{made['id']}")
    assert made["parent"] == {"task": first["id"], "step": "a", "link": "fork_of"}
    again = await window.good("POST", path, {"from_step": "a", "inputs": {"n": 5}}, idempotency_key="k")
    assert again["id"] == made["id"]
    others: list[dict[str, JsonValue]] = [
        {"from_step": "b"},
        {"arguments": {"a": {"value": 6}}},
        {"title": "Another"},
    ]
    for other in others:
        body: dict[str, JsonValue] = {"from_step": "a", "inputs": {"n": 5}, **other}
        refused = await window.refused("POST", path, body, idempotency_key="k")
        assert codes(refused) == (409, "idempotency_conflict"), other
    assert (await window.finish(str(made["id"])))["outputs"] == {"n": 5}
    noted = await window.good("POST", path, {"from_step": "b", "note": "the other way"})
    assert {"note": "the other way"} in await changes_of(window, noted["id"])


async def test_patch(window: Window, tools: Tools) -> None:
    steps: list[JsonValue] = [{"id": "h", "tool": "test.hold"}, {"id": "x", "tool": "test.echo"}]
    task = await window.start({"name": "p", "steps": steps})
    await tools.holding.wait()
    path = f"/v1/tasks/{task['id']}/plan"
    ops: list[JsonValue] = [{"op": "append", "step": {"id": "y", "tool": "test.echo"}}]
    assert codes(await window.refused("PATCH", path, {"ops": ops})) == (400, "bad_request")
    assert codes(await window.refused("PATCH", path, {"ops": [], "base_revision": 1})) == (422, "plan_invalid")
    assert codes(await window.refused("PATCH", path, {"ops": ops, "base_revision": 2})) == (409, "patch.stale_revision")
    raised: list[JsonValue] = [{"op": "replace", "id": "x", "step": {"id": "x", "tool": "test.once"}}]
    assert codes(await window.refused("PATCH", path, {"ops": raised, "base_revision": 1})) == (
        422,
        "patch.effect_raised",
    )
    late: list[JsonValue] = [{"op": "skip", "id": "h"}]
    assert codes(await window.refused("PATCH", path, {"ops": late, "base_revision": 1})) == (409, "patch.step_started")
    done = await window.good("PATCH", path, {"ops": ops, "base_revision": 1, "note": "more"})
    assert (done["revision"], [change["id"] for change in done["diff"]]) == (2, ["y"])
    now, before = await window.good("GET", path), await window.good("GET", f"{path}?revision=1")
    assert [len(one["plan"]["steps"]) for one in (now, before)] == [3, 2]
    assert (now["digest"], before["digest"]) == (done["digest"], task["plan"]["digest"])
    assert codes(await window.refused("GET", f"{path}?revision=7")) == (404, "not_found")
    tools.release.set()
    ended = await window.finish(task["id"])
    assert (ended["status"], ended["plan"]["revision"], ended["progress"]["total"]) == ("completed", 2, 3)
    assert codes(await window.refused("PATCH", path, {"ops": ops, "base_revision": 2})) == (409, "task_terminal")


async def test_undo(window: Window, tools: Tools) -> None:
    first = await window.finish((await window.start(LINE))["id"])
    path = f"/v1/tasks/{first['id']}/undo"
    asked = await window.good("POST", path, {"dry_run": True})
    assert (asked["undo"], [one["step"] for one in asked["not_undoable"]]) == (["b"], ["a"])
    assert codes(await window.refused("POST", path, {"steps": [1]})) == (400, "bad_request")
    response = await window.ask("POST", path, {"note": "wrong"}, idempotency_key="u")
    again = await window.good("POST", path, {}, idempotency_key="u")
    assert (response.status, again["parent"]["link"]) == (201, "undo_of")
    assert again["id"] == response.json()["id"]
    assert (await window.good("POST", path, {"steps": ["b"]}, idempotency_key="u"))["id"] == again["id"]
    other = await window.refused("POST", path, {"steps": ["a"]}, idempotency_key="u")
    assert codes(other) == (409, "idempotency_conflict")
    await window.finish(again["id"])
    assert tools.calls["back"] == 1
    assert codes(await window.refused("POST", path, {})) == (409, "nothing_to_undo")
    assert [one["note"] for one in await changes_of(window, first["id"])] == ["wrong"]


async def test_a_second_cancel_and_one_too_late(window: Window, tools: Tools) -> None:
    task = await window.start({**HOLD, "finally": [{"id": "t", "tool": "test.echo"}]})
    await tools.holding.wait()
    path = f"/v1/tasks/{task['id']}/cancel"
    assert (await window.ask("POST", path, {})).status == 202
    assert (await window.ask("POST", path, {})).status == 202
    await window.engine.clock.advance("6s")
    assert (await window.ask("POST", path, {})).status == 200
    other = await window.finish((await window.start(LINE))["id"])
    assert codes(await window.refused("POST", f"/v1/tasks/{other['id']}/cancel", {})) == (409, "illegal_state")
