"""A task taken over through the api: calls made for it, its completion, its variables, and the packet to go on from."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep.domain.values import JsonValue
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import EVE, Window
from tests.unit.engine.test_continue import World

PLAN: dict[str, JsonValue] = {
    "name": "data-pipeline",
    "description": "fetch, transform and store records",
    "inputs": {"source": "string"},
    "steps": [
        {
            "id": "fetch",
            "bind": "raw_data",
            "tool": "fetch_data",
            "with": {"source": "${inputs.source}"},
            "retry": 0,
            "retryable": True,
            "guidance": "If ${inputs.source} stays down, use the mirror.",
        },
        {"id": "transform", "bind": "transformed", "tool": "transform_data", "with": {"data": "${raw_data}"}},
        {"id": "store", "tool": "store_data", "with": {"payload": "${transformed.rows}"}},
    ],
}


@pytest.fixture
async def window() -> AsyncIterator[Window]:
    async with TestEngine(World().tools()) as engine:
        yield Window(engine)


async def paused(window: Window) -> str:
    body: dict[str, JsonValue] = {"plan": PLAN, "inputs": {"source": "http://a.test/x"}, "continue_by": "client"}
    task = str((await window.good("POST", "/v1/tasks", body))["id"])
    await window.engine.clock.advance("1s")
    return task


@pytest.mark.req("HAND-02")
async def test_the_packet_says_what_is_left(window: Window) -> None:
    task = await paused(window)
    packet = await window.good("GET", f"/v1/tasks/{task}/handoff")
    assert packet["schema"] == "everstep.handoff/1"
    assert packet["goal"] == "data-pipeline: fetch, transform and store records"
    assert packet["pause_reason"] == {
        "type": "toolError",
        "failedStep": "fetch",
        "error": "connection refused",
        "retryable": True,
        "suggestedTool": "fetch_data",
    }
    assert packet["answers"][:2] == ["retry", "retry_with"]
    assert [(one["tool"], one["arguments"]) for one in packet["remaining"]] == [
        ("fetch_data", {"source": "http://a.test/x"}),
        ("transform_data", {"data": "<output from raw_data>"}),
        ("store_data", {"payload": "<field 'rows' from transformed>"}),
    ]
    assert packet["remaining"][0]["guidance"] == "If http://a.test/x stays down, use the mirror."
    assert packet["completed"] == packet["effects_made"] == []


@pytest.mark.req("FNDX-03", "CONT-02")
async def test_a_client_goes_on_and_completes(window: Window) -> None:
    task = await paused(window)
    path = f"/v1/tasks/{task}"
    variables = await window.good("GET", f"{path}/variables")
    assert variables["_workflow.result.fetch"] == {"error": "connection refused"}
    assert variables["_workflow.pause_reason"]["type"] == "toolError"
    assert [step["status"] for step in variables["_workflow.progress"]["steps"]] == ["failed", "pending", "pending"]
    call: dict[str, Any] = {"tool": "fetch_data", "arguments": {"source": "http://mirror.test/x"}}
    made = await window.good("POST", f"{path}/continue", call)
    assert (made["step"], made["output"], made["error"]) == ("fetch", {"lines": ["a,1"]}, None)
    variables = await window.good("GET", f"{path}/variables")
    assert variables["_workflow.result.fetch"] == {"lines": ["a,1"]}
    assert "_workflow.pause_reason" not in variables
    calls: dict[str, JsonValue] = {
        "transform_data": {"data": "<output from raw_data>"},
        "store_data": {"payload": [["a", 1]]},
    }
    for tool, arguments in calls.items():
        made = await window.good("POST", f"{path}/continue", {"tool": tool, "arguments": arguments})
        assert made["error"] is None
    packet = await window.good("GET", f"{path}/handoff")
    assert [one["step"] for one in packet["completed"]] == ["fetch", "transform", "store"]
    assert [(one["step"], one["effect"]) for one in packet["effects_made"]] == [("store", "once")]
    done = await window.good("POST", f"{path}/complete", {"result": {"stored": 1}})
    assert (done["status"], done["outputs"]) == ("completed", {"stored": 1})


async def test_what_cannot_be_done_is_refused_by_type(window: Window) -> None:
    task = await paused(window)
    path = f"/v1/tasks/{task}"
    bad: list[dict[str, Any]] = [{}, {"tool": "nothing"}, {"tool": "fetch_data", "arguments": 1}]
    for body in bad:
        assert (await window.ask("POST", f"{path}/continue", body)).status == 400
    assert (await window.ask("POST", f"{path}/complete", {})).status == 400
    call: dict[str, JsonValue] = {"tool": "look", "arguments": {}}
    assert (await window.ask("POST", f"{path}/continue", call, who=EVE)).status == 404
    await window.good("POST", f"{path}/cancel", {})
    status, error = await window.refused("POST", f"{path}/continue", call)
    assert (status, error["code"]) == (409, "task_terminal")


async def test_a_handle_is_another_name_of_the_task_for_its_owner(window: Window) -> None:
    task = await paused(window)
    first = await window.good("POST", f"/v1/tasks/{task}/handle", {"ttl_ms": 5}, local=True)
    again = await window.good("POST", f"/v1/tasks/{first['id']}/handle", {"notes": {"aside": 1}}, local=True)
    assert first["id"].startswith("mt_")
    assert len(first["id"]) == 35
    assert (again["id"], again["notes"]) == (first["id"], {"aside": 1})
    assert (await window.good("GET", f"/v1/tasks/{first['id']}"))["id"] == task
    assert (await window.ask("GET", f"/v1/tasks/{first['id']}", who=EVE)).status == 404


async def test_a_client_keeps_values_with_the_task(window: Window) -> None:
    task = await paused(window)
    path = f"/v1/tasks/{task}/variables"
    await window.good("PATCH", path, {"variables": {"mine": 1, "gone": 2}}, local=True)
    kept = await window.good("PATCH", path, {"variables": {"gone": None}}, local=True)
    assert (kept.get("mine"), "gone" in kept) == (1, False)
    wrong: dict[str, JsonValue] = {"variables": {"_workflow.progress": 1}}
    assert (await window.ask("PATCH", path, wrong, local=True)).status == 400
