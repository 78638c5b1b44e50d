"""Approvals over `/v1`: the exact fields, the digest, who may answer, and the routes around them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.values import JsonValue
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import EVE, Window
from tests.unit.engine.plans import Tools

ROBOT = Who(owner="local", actor=Actor(kind=ActorKind.LLM, id="claude", via="mcp"))
PLAN: dict[str, JsonValue] = {
    "name": "p",
    "steps": [{"id": "a", "tool": "test.echo", "with": {"value": 1}, "approve": {"title": "Go?", "edit": ["value"]}}],
    "outputs": {"value": "${a.value}"},
}


@pytest.fixture
async def window() -> AsyncIterator[Window]:
    async with TestEngine(Tools().all()) as engine:
        yield Window(engine)


async def waiting(window: Window) -> dict[str, Any]:
    task = await window.start(PLAN)
    await window.engine.clock.advance("1ms")
    (pause,) = (await window.good("GET", f"/v1/inbox?task={task['id']}&type=approvalRequired"))["items"]
    return dict(pause)


@pytest.mark.req("W.2")
async def test_every_listed_request_does_what_it_says_once_filled(window: Window) -> None:
    fill: dict[str, dict[str, Any]] = {
        "approve": {},
        "edit": {"arguments": {"value": 2}},
        "reject": {"note": "no"},
        "answer": {"value": {"value": 3}},
    }
    ends = {"approve": "completed", "edit": "completed", "reject": "failed", "answer": "completed"}
    for word, more in fill.items():
        pause = await waiting(window)
        request = next(one["request"] for one in pause["answers"] if one["answer"] == word)
        answered = await window.good(request["method"], request["path"], {**request["body"], **more})
        assert (answered["status"], answered["answered"]["answer"], answered["answers"]) == ("answered", word, [])
        await window.engine.clock.advance("1ms")
        task = await window.good("GET", f"/v1/tasks/{pause['task']}?include=attempts")
        assert task["status"] == ends[word]
        grant = (await window.good("GET", f"/v1/inbox/{pause['id']}"))["grant"]
        assert grant == ("consumed" if word in ("approve", "edit") else None)
        assert [one["approval"] for one in task["attempts"]] == [pause["id"]] * (grant == "consumed")


async def test_what_was_answered_is_listed_newest_first_with_who_did_it(window: Window) -> None:
    pauses = [await waiting(window) for _ in range(3)]
    for pause in pauses[:2]:
        asked = pause["answers"][0]["request"]
        await window.good(asked["method"], asked["path"], asked["body"])
    listed = (await window.good("GET", "/v1/inbox?answered=1"))["items"]
    assert [one["id"] for one in listed] == [pauses[1]["id"], pauses[0]["id"]]
    assert {(one["status"], one["answered"]["answer"], one["answered"]["actor"]["id"]) for one in listed} == {
        ("answered", "approve", "ana")
    }
    assert [one["id"] for one in (await window.good("GET", "/v1/inbox?answered=1&limit=1"))["items"]] == [
        pauses[1]["id"]
    ]
    assert [one["id"] for one in (await window.good("GET", "/v1/inbox"))["items"]] == [pauses[2]["id"]]
    assert (await window.good("GET", "/v1/inbox?answered=1", who=EVE))["items"] == []


async def test_answers_that_are_refused_leave_it_open(window: Window) -> None:
    pause = await waiting(window)
    path, digest = f"/v1/inbox/{pause['id']}/answer", pause["reason"]["digest"]
    bad: list[tuple[JsonValue, int, str]] = [
        ({"answer": "approve"}, 422, "answer_invalid"),
        ({"answer": "approve", "digest": "sha256:00"}, 409, "stale_digest"),
        ({"answer": "reject", "digest": digest}, 422, "answer_invalid"),
        ({"answer": "edit", "digest": digest}, 422, "answer_invalid"),
        ({"answer": "edit", "digest": digest, "arguments": {"label": "x"}}, 422, "answer_invalid"),
        ({"answer": "answer", "value": 1}, 422, "answer_invalid"),
        ({"answer": "skip"}, 422, "answer_invalid"),
    ]
    for body, status, code in bad:
        refused, error = await window.refused("POST", path, body)
        assert (refused, error["code"]) == (status, code), body
    refused, error = await window.refused("POST", path, {"answer": "approve", "digest": digest}, who=ROBOT)
    assert (refused, error["code"]) == (403, "answer_not_allowed")
    assert (await window.good("GET", f"/v1/inbox/{pause['id']}"))["status"] == "open"


@pytest.mark.req("4.4")
async def test_a_task_says_how_long_it_may_be_paused(window: Window) -> None:
    for wrong in ("5s", True, 0, -1, 1e12):
        status, error = await window.refused("POST", "/v1/tasks", {"plan": PLAN, "pause_timeout": wrong})
        assert (status, error["code"]) == (400, "bad_request"), wrong
    task = await window.good("POST", "/v1/tasks", {"plan": PLAN, "pause_timeout": 5})
    await window.engine.clock.advance("1ms")
    (pause,) = (await window.good("GET", f"/v1/inbox?task={task['id']}"))["items"]
    assert (pause["on_timeout"], pause["expires_at"] > pause["opened_at"]) == ("cancel", True)
    await window.engine.clock.advance("6s")
    assert (await window.good("GET", f"/v1/tasks/{task['id']}"))["status"] == "cancelled"
    assert (await window.good("GET", f"/v1/inbox/{pause['id']}"))["status"] == "expired"
