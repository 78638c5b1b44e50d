"""Tasks through the api: created once, found by name, commanded with a version in hand, refused by type."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from everstep.domain.errors import SettingsError
from everstep.domain.values import JsonValue
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from everstep.wire.plan import digest, from_json
from tests.unit.doors.api.window import ANA, BEN, ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools

TWO: dict[str, JsonValue] = {
    "name": "two",
    "inputs": {"topic": "string"},
    "steps": [
        {"id": "a", "tool": "test.echo", "with": {"value": "${inputs.topic}"}},
        {"id": "b", "tool": "test.echo", "with": {"value": "${a.value}"}},
    ],
    "outputs": {"said": "${b.value}"},
}
ANY: dict[str, JsonValue] = {"name": "any", "inputs": {"x": "number"}, "steps": [{"id": "a", "tool": "test.echo"}]}
TEXT = "name: two\nsteps:\n  - id: a\n    tool: test.ecko\n"


# --- create ---


async def test_a_new_task_is_there_when_the_reply_is(window: Window) -> None:
    response = await window.ask("POST", "/v1/tasks", {"plan": TWO, "inputs": {"topic": "sun"}, "title": "T"})
    task = response.json()
    assert (response.status, response.headers["location"]) == (201, f"/v1/tasks/{task['id']}")
    assert response.headers["etag"] == f'"{task["seq"]}"'
    assert (task["title"], task["inputs"], task["generation"]) == ("T", {"topic": "sun"}, 1)
    assert task["created_by"] == {"kind": "human", "id": "ana", "via": "http"}
    done = await window.finish(str(task["id"]))
    assert (done["status"], done["outputs"]) == ("completed", {"said": "sun"})


async def test_what_came_over_the_wire_is_untrusted_unless_the_local_user_vouches(window: Window) -> None:
    async def trusted(task: dict[str, Any]) -> bool:
        page = await window.good("GET", f"/v1/tasks/{task['id']}/events?limit=1")
        return bool(page["events"][0]["data"]["trusted"])

    assert not await trusted(await window.start(ECHO))
    assert await trusted(await window.good("POST", "/v1/tasks", {"plan": ECHO, "trusted": True}, local=True))
    assert not await trusted(await window.good("POST", "/v1/tasks", {"plan": ECHO}, local=True))


async def test_a_plan_that_the_operator_names_by_its_digest_is_trusted_whoever_sends_it(tools: Tools) -> None:
    plan, other = {**ECHO, "name": "known"}, {**ECHO, "name": "other"}
    read = from_json(plan).plan
    assert read is not None
    name = digest(read)
    settings = load_settings({"plans.trusted": [name]}, env={})
    async with TestEngine(tools.all()) as engine:
        window = Window(engine, settings)
        bodies: list[tuple[dict[str, JsonValue], bool]] = [
            ({"plan": plan}, True),
            ({"plan_text": json.dumps(plan)}, True),
            ({"plan": other}, False),
        ]
        for body, trusted in bodies:
            task = await window.good("POST", "/v1/tasks", body)
            page = await window.good("GET", f"/v1/tasks/{task['id']}/events?limit=1")
            assert page["events"][0]["data"]["trusted"] is trusted
    with pytest.raises(SettingsError, match="a list of digests"):
        load_settings({"plans.trusted": ["known"]}, env={})


async def test_a_plan_of_the_operator_is_found_by_name_and_trusted(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "brief.plan.yaml").write_text("name: brief\nsteps: [{id: a, tool: test.echo}]\n", encoding="utf-8")
    settings = load_settings({"plans.dirs": [str(tmp_path / "none"), str(tmp_path)]}, env={})
    async with TestEngine(tools.all()) as engine:
        window = Window(engine, settings)
        task = await window.good("POST", "/v1/tasks", {"plan_name": "brief"})
        assert task["plan"]["name"] == "brief"
        page = await window.good("GET", f"/v1/tasks/{task['id']}/events?limit=1")
        assert page["events"][0]["data"]["trusted"] is True
        status, error = await window.refused("POST", "/v1/tasks", {"plan_name": "brieff"})
        assert (status, error["code"]) == (404, "not_found")
        assert "did you mean 'brief'?" in error["message"]
        for name in ("../brief", "Brief", "", "a/b"):
            assert codes(await window.refused("POST", "/v1/tasks", {"plan_name": name})) == (400, "bad_request")


async def test_a_text_is_refused_with_every_problem_and_its_line(window: Window) -> None:
    text = f"{TEXT}    wiht: {{}}\n"
    status, error = await window.refused("POST", "/v1/tasks", {"plan_text": text, "file": "two.plan.yaml"}, local=True)
    assert (status, error["code"]) == (422, "plan_invalid")
    problems = error["details"]["problems"]
    assert [(one["code"], one["line"], one["file"]) for one in problems] == [
        ("plan.unknown_tool", 4, "two.plan.yaml"),
        ("plan.unknown_key", 5, "two.plan.yaml"),
    ]
    assert [one["suggestion"] for one in problems] == ["test.echo", "with"]
    assert await window.good("GET", "/v1/tasks") == {"items": [], "next_cursor": None}


BAD: dict[str, tuple[dict[str, JsonValue], int, str]] = {
    "no plan": ({}, 400, "bad_request"),
    "two plans": ({"plan": ECHO, "plan_text": "x"}, 400, "bad_request"),
    "plan is no object": ({"plan": [1]}, 422, "plan_invalid"),
    "text is no text": ({"plan_text": 1}, 400, "bad_request"),
    "inputs are no object": ({"plan": ECHO, "inputs": [1]}, 400, "bad_request"),
    "unknown input": ({"plan": ECHO, "inputs": {"x": 1}}, 422, "inputs_invalid"),
    "missing input": ({"plan": TWO}, 422, "inputs_invalid"),
    "title is no text": ({"plan": ECHO, "title": 1}, 400, "bad_request"),
    "labels are no texts": ({"plan": ECHO, "labels": {"a": 1}}, 400, "bad_request"),
    "priority is no number": ({"plan": ECHO, "priority": "1"}, 400, "bad_request"),
    "priority is no integer": ({"plan": ECHO, "priority": True}, 400, "bad_request"),
    "priority out of bounds": ({"plan": ECHO, "priority": 4}, 400, "bad_request"),
    "attach is no flag": ({"plan": ECHO, "attach": 1}, 400, "bad_request"),
    "pause after nothing": ({"plan": ECHO, "pause_after": "zzz"}, 400, "bad_request"),
    "no number": ({"plan": TWO, "inputs": {"topic": float("nan")}}, 422, "inputs_invalid"),
    "too large a number": ({"plan": ANY, "inputs": {"x": 2**60}}, 400, "bad_request"),
    "later": ({"plan": ECHO, "not_before": "2030-01-01T00:00:00Z"}, 422, "unknown_field"),
    "when": ({"plan": ECHO, "deadline": "tomorrow"}, 400, "bad_request"),
    "more": ({"plan": ECHO, "limits": {"calls": 10**7}}, 400, "bad_request"),
    "what": ({"plan": ECHO, "limits": {"cals": 1}}, 400, "bad_request"),
}


@pytest.mark.parametrize("way", BAD)
async def test_a_bad_request_creates_nothing(window: Window, way: str) -> None:
    body, status, code = BAD[way]
    assert codes(await window.refused("POST", "/v1/tasks", body)) == (status, code)
    assert (await window.good("GET", "/v1/tasks"))["items"] == []


async def test_the_same_key_gives_the_same_task(window: Window) -> None:
    body: JsonValue = {"plan": TWO, "inputs": {"topic": "sun"}}
    first = await window.ask("POST", "/v1/tasks", body, idempotency_key="brief-1")
    again = await window.ask("POST", "/v1/tasks", body, idempotency_key="brief-1")
    assert (first.status, again.status) == (201, 200)
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    assert first.json()["id"] == again.json()["id"]
    other: JsonValue = {"plan": TWO, "inputs": {"topic": "moon"}}
    assert codes(await window.refused("POST", "/v1/tasks", other, idempotency_key="brief-1")) == (
        409,
        "idempotency_conflict",
    )
    for key in ("", "t_x", "mt_x", "a b", "x" * 129):
        assert codes(await window.refused("POST", "/v1/tasks", body, idempotency_key=key)) == (400, "bad_request")


async def test_attach_finds_the_newest_unfinished_task_of_the_same_plan_and_inputs(
    window: Window, tools: Tools
) -> None:
    held = await window.start(HOLD)
    response = await window.ask("POST", "/v1/tasks", {"plan": HOLD, "attach": True})
    assert (response.status, response.json()["id"]) == (200, held["id"])
    tools.release.set()
    await window.finish(held["id"])
    response = await window.ask("POST", "/v1/tasks", {"plan": HOLD, "attach": True})
    assert (response.status, response.json()["id"] == held["id"]) == (201, False)


async def test_pause_after_stops_there(window: Window) -> None:
    task = await window.start(TWO, inputs={"topic": "sun"}, pause_after="a", labels={"team": "x"}, priority=0)
    shown = await window.finish(task["id"])
    assert (shown["status"], shown["labels"], shown["priority"]) == ("paused", {"team": "x"}, 0)
    assert shown["pause"]["reason"]["type"] == "userRequested"
    assert [step["status"] for step in shown["steps"]] == ["completed", "pending"]


# --- look ---


async def test_a_task_is_found_by_id_key_and_beginning_and_by_nobody_else(window: Window) -> None:
    task = await window.good("POST", "/v1/tasks", {"plan": ECHO}, idempotency_key="mine")
    for name in (task["id"], "mine", task["id"][:10]):
        assert (await window.good("GET", f"/v1/tasks/{name}"))["id"] == task["id"]
    foreign = await window.refused("GET", f"/v1/tasks/{task['id']}", who=EVE)
    unknown = await window.refused("GET", f"/v1/tasks/{task['id'][:-1]}x", who=EVE)
    assert codes(foreign) == codes(unknown) == (404, "not_found")


async def test_an_unchanged_task_need_not_be_sent_again(window: Window, tools: Tools) -> None:
    task = await window.start(HOLD)
    await tools.holding.wait()
    first = await window.ask("GET", f"/v1/tasks/{task['id']}")
    again = await window.ask("GET", f"/v1/tasks/{task['id']}", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert (await window.ask("GET", f"/v1/tasks/{task['id']}", if_none_match='"1"')).status == 200


async def test_attempts_and_plan_come_when_asked_for(window: Window) -> None:
    task = await window.start(ECHO)
    await window.finish(task["id"])
    shown = await window.good("GET", f"/v1/tasks/{task['id']}?include=attempts,plan")
    assert [(one["step"], one["status"]) for one in shown["attempts"]] == [("a", "succeeded")]
    assert shown["plan_source"]["name"] == "echo"
    assert codes(await window.refused("GET", f"/v1/tasks/{task['id']}?include=all")) == (400, "bad_request")


async def test_a_list_is_newest_first_and_says_what_each_waits_for(window: Window) -> None:
    done = await window.start(ECHO)
    await window.finish(done["id"])
    await window.engine.clock.advance("1m")
    stopped = await window.start(TWO, inputs={"topic": "sun"}, pause_after="a")
    await window.finish(stopped["id"])
    listed = await window.good("GET", "/v1/tasks")
    assert [one["id"] for one in listed["items"]] == [stopped["id"], done["id"]]
    assert [one["explain"]["doing"] for one in listed["items"]] == ["paused by ana", "completed"]
    assert "steps" not in listed["items"][0]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=completed", 1), ("status=completed,queued,running", 1), ("status=failed", 0), ("plan=echo", 1),
        ("plan=other", 0), ("since=1h", 1), ("since=1ms", 0), ("since=2000-01-01T00:00:00.000Z", 1), ("q=ech", 1),
        ("q=zzz", 0),
        ("limit=1", 1),
    ],
)  # fmt: skip
async def test_lists_are_filtered(window: Window, monkeypatch: pytest.MonkeyPatch, query: str, found: int) -> None:
    task = await window.start(ECHO)
    await window.finish(task["id"])
    now = window.engine.clock.now() + 60_000
    monkeypatch.setattr(time, "time_ns", lambda: now * 1_000_000)
    assert len((await window.good("GET", f"/v1/tasks?{query}"))["items"]) == found


@pytest.mark.parametrize(
    "query", ["status=done", "since=yesterday", "limit=many", "limit=-1", "limit=0", "cursor=made-up"]
)
async def test_a_wrong_filter_is_refused(window: Window, query: str) -> None:
    assert codes(await window.refused("GET", f"/v1/tasks?{query}")) == (400, "bad_request")


async def test_a_list_goes_on_where_it_stopped(window: Window) -> None:
    for _ in range(3):
        await window.start(ECHO)
        await window.engine.clock.advance("1s")
    first = await window.good("GET", "/v1/tasks?limit=2")
    rest = await window.good("GET", f"/v1/tasks?limit=2&cursor={first['next_cursor']}")
    assert (len(first["items"]), len(rest["items"]), rest["next_cursor"]) == (2, 1, None)


# --- command ---


async def test_pause_and_resume_a_running_task(window: Window, tools: Tools) -> None:
    task = await window.start(HOLD)
    await tools.holding.wait()
    path = f"/v1/tasks/{task['id']}"
    response = await window.ask("POST", f"{path}/pause", {"mode": "graceful", "note": "wait"}, who=BEN)
    assert (response.status, response.json()["status"], response.json()["mode_used"]) == (202, "pausing", "graceful")
    again = await window.ask("POST", f"{path}/pause", {})
    assert again.json()["seq"] == response.json()["seq"]
    assert again.json()["waits_for"] == ["a"]
    assert codes(await window.refused("POST", f"{path}/pause", {"mode": "brutal"})) == (400, "bad_request")
    tools.release.set()
    await window.engine.clock.advance("1s")
    assert (await window.good("GET", path))["explain"]["doing"] == "paused by ben"
    assert (await window.ask("POST", f"{path}/resume")).status == 202
    assert (await window.finish(task["id"]))["status"] == "completed"


async def test_resume_lifts_a_pause_and_nothing_else(window: Window) -> None:
    task = await window.start(TWO, inputs={"topic": "sun"}, pause_after="a")
    await window.finish(task["id"])
    path = f"/v1/tasks/{task['id']}"
    assert (await window.ask("POST", f"{path}/pause")).status == 200
    response = await window.ask("POST", f"{path}/resume", {"note": "go"})
    assert (response.status, response.json()["status"]) == (202, "queued")
    assert (await window.finish(task["id"]))["status"] == "completed"
    assert codes(await window.refused("POST", f"{path}/resume")) == (409, "illegal_state")


async def test_resume_names_the_answer_that_is_needed(window: Window, tools: Tools) -> None:
    tools.raises["x"] = [ValueError("boom")]
    plan: dict[str, JsonValue] = {
        "name": "p", "steps": [{"id": "a", "tool": "test.echo", "with": {"label": "x"}, "on_error": "pause"}]
    }  # fmt: skip
    task = await window.start(plan)
    shown = await window.finish(task["id"])
    status, error = await window.refused("POST", f"/v1/tasks/{task['id']}/resume")
    assert (status, error["code"], error["details"]["pause"]) == (409, "answer_needed", shown["pauses"][0])


async def test_cancel_ends_at_once_or_soon(window: Window, tools: Tools) -> None:
    held = await window.start(HOLD)
    await tools.holding.wait()
    response = await window.ask("POST", f"/v1/tasks/{held['id']}/cancel", {"note": "enough"})
    assert (response.status, response.json()["status"]) == (202, "cancelling")
    assert (await window.finish(held["id"]))["status"] == "cancelled"
    stopped = await window.start(TWO, inputs={"topic": "sun"}, pause_after="a")
    await window.finish(stopped["id"])
    response = await window.ask("POST", f"/v1/tasks/{stopped['id']}/cancel")
    assert (response.status, response.json()["status"]) == (200, "cancelled")
    assert (await window.ask("POST", f"/v1/tasks/{stopped['id']}/cancel")).status == 200


@pytest.mark.parametrize("command", ["pause", "resume", "cancel"])
async def test_an_illegal_command_names_the_state(window: Window, command: str) -> None:
    task = await window.start(ECHO)
    await window.finish(task["id"])
    status, error = await window.refused("POST", f"/v1/tasks/{task['id']}/{command}")
    assert (status, error["code"], error["details"]["status"]) == (409, "illegal_state", "completed")


@pytest.mark.parametrize("command", ["pause", "resume", "cancel"])
async def test_a_command_can_be_bound_to_a_version(window: Window, tools: Tools, command: str) -> None:
    task = await window.start(HOLD)
    await tools.holding.wait()
    path = f"/v1/tasks/{task['id']}"
    status, error = await window.refused("POST", f"{path}/{command}", if_match='"1"')
    assert (status, error["code"], error["details"]["task"]["id"]) == (412, "version_conflict", task["id"])
    seen = (await window.ask("GET", path)).headers["etag"]
    assert (await window.ask("POST", f"{path}/{command}", if_match=seen)).status in (200, 202)


@pytest.mark.parametrize("body", [{"mode": "now"}, {"note": 1}])
async def test_a_wrong_command_is_refused(window: Window, tools: Tools, body: JsonValue) -> None:
    task = await window.start(HOLD)
    await tools.holding.wait()
    assert codes(await window.refused("POST", f"/v1/tasks/{task['id']}/pause", body)) == (400, "bad_request")


@pytest.mark.parametrize("command", ["pause", "resume", "cancel"])
async def test_another_owner_cannot_command(window: Window, command: str) -> None:
    task = await window.start(ECHO)
    assert codes(await window.refused("POST", f"/v1/tasks/{task['id']}/{command}", who=EVE)) == (404, "not_found")
    assert ANA.owner != EVE.owner
