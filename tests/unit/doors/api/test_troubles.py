"""Errors and breakers at the api, and the promise of every suggestion: sent as given, it does what its label says."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep.domain.values import JsonValue
from everstep.ports.tool import Denied, Impossible, Misconfigured, ResourceExceeded, ToolError, Transient
from everstep.testing.engine import TestEngine
from everstep.testing.fakes import Fake, fake
from tests.unit.doors.api.window import EVE, Window, codes

ERROR_FIELDS = [
    *("id", "code", "category", "message", "what_to_do", "step", "attempt", "retry", "impact", "suggestions"),
    *("details", "cause", "effect_state", "retry_after_s"),
]
FAILURES: dict[str, ToolError] = {
    "transient": Transient("down"),
    "configuration": Misconfigured("no such list"),
    "permission": Denied("no access"),
    "resource": ResourceExceeded("too much", limit="pages", used=9, max=5),
    "logic": Impossible("there is none"),
    "internal": ToolError("broke"),
}
ACTIONS = {
    "transient": ["retry", "wait", "switch_tool", "skip", "cancel"],
    "configuration": ["edit", "switch_tool", "retry", "skip", "cancel"],
    "permission": ["authorize", "switch_tool", "skip", "cancel"],
    "resource": ["edit", "wait", "switch_tool", "retry", "skip", "cancel"],
    "logic": ["edit", "switch_tool", "retry", "skip", "cancel"],
    "internal": ["retry", "edit", "switch_tool", "skip", "cancel"],
}


def plan(**keys: JsonValue) -> dict[str, JsonValue]:
    return {
        "name": "p",
        "steps": [
            {"id": "a", "tool": "net.get", "with": {"q": 1}, **keys},
            {"id": "b", "tool": "net.last", "with": {"x": "${default(a, null)}"}},
        ],
    }


class Stage:
    """A window on an engine whose first tool fails once, and whose other does not."""

    def __init__(self, window: Window, tools: dict[str, Fake]) -> None:
        self.window = window
        self.tools = tools

    async def failed(self, **keys: JsonValue) -> dict[str, Any]:
        task = await self.window.start(plan(**keys))
        await self.window.engine.clock.advance("1ms")
        return await self.window.good("GET", f"/v1/tasks/{task['id']}")

    async def error_of(self, task: dict[str, Any]) -> dict[str, Any]:
        step = await self.window.good("GET", f"/v1/tasks/{task['id']}/steps/a")
        error: dict[str, Any] = step["error"]
        assert list(error) == ERROR_FIELDS
        return error


@pytest.fixture
async def stage(category: str) -> AsyncIterator[Stage]:
    tools = {
        "net.get": fake(raises=[FAILURES[category], FAILURES[category], None], returns=1, effect="pure"),
        "net.other": fake(returns=2, effect="pure"),
        "net.last": fake(returns=3, effect="pure"),
    }
    async with TestEngine(tools) as engine:
        yield Stage(Window(engine), tools)
        assert await engine.store.check() == []


ASKS: dict[str, JsonValue] = {"on_error": "pause", "retry": 0, "fallback": [{"tool": "net.other"}]}


async def paused_with_its_fallback_used(stage: Stage) -> dict[str, Any]:
    """Both tools have failed once, so the plan asks."""
    stage.tools["net.other"]._raises = [Misconfigured("not now"), None]
    task = await stage.failed(**ASKS)
    assert task["status"] == "paused"
    return task


@pytest.mark.req("L.2", "L.5")
@pytest.mark.parametrize("category", FAILURES)
async def test_which_actions_are_offered(stage: Stage, category: str) -> None:
    task = await stage.failed(on_error="pause", retry=0)
    assert (task["status"], stage.tools["net.get"].count) == ("paused", 1)
    error = await stage.error_of(task)
    assert [one["action"] for one in error["suggestions"]] == [one for one in ACTIONS[category] if one != "switch_tool"]
    assert (error["step"], error["category"], error["retry"]["count"]) == ("a", category, 0)
    assert error["impact"]["task_continues"]


@pytest.mark.req("8.5", "N.3")
@pytest.mark.parametrize(("category", "action"), [(kind, action) for kind in ACTIONS for action in ACTIONS[kind]])
async def test_every_suggestion_of_a_paused_task_does_what_its_label_says(
    stage: Stage, category: str, action: str
) -> None:
    if action == "switch_tool":
        task = await paused_with_its_fallback_used(stage)
    else:
        task = await stage.failed(**{**ASKS, "fallback": []})
    error = await stage.error_of(task)
    wanted = [one for one in error["suggestions"] if one["action"] == action]
    assert len(wanted) == 1
    before = stage.tools["net.get"].count
    window, clock = stage.window, stage.window.engine.clock
    for suggestion in wanted:
        request = suggestion["request"]
        await window.good(request["method"], request["path"], request["body"])
        await clock.advance("1ms")
        now = await window.good("GET", f"/v1/tasks/{task['id']}")
        step = await window.good("GET", f"/v1/tasks/{task['id']}/steps/a")
        match action:
            case "retry" | "authorize":
                assert stage.tools["net.get"].count == before + 1
            case "edit":
                assert stage.tools["net.get"].calls[-1].arguments == request["body"]["arguments"]
                assert stage.tools["net.get"].count == before + 1
            case "wait":
                assert (now["status"], stage.tools["net.get"].count) == ("running", before)
                assert step["retry"]["next_at"] == request["body"]["at"]
                await clock.advance("6m")
                assert stage.tools["net.get"].count == before + 1
            case "switch_tool":
                assert (step["status"], step["tool_used"]) == ("completed", "net.other")
                assert stage.tools["net.get"].count == before
            case "skip":
                assert (step["status"], step["skip"]["reason"]) == ("skipped", "requested")
                assert now["status"] == "completed"
            case "cancel":
                assert now["status"] == "cancelled"
            case _:
                pytest.fail(action)


@pytest.mark.parametrize("category", ["logic"])
async def test_the_error_of_a_failed_task_names_its_step_and_what_it_cost(stage: Stage) -> None:
    task = await stage.failed(retry=0)
    assert task["status"] == "failed"
    error = task["error"]
    assert list(error) == ERROR_FIELDS
    assert (error["step"], error["code"]) == ("a", "tool_impossible")
    assert error["impact"] == {"task_continues": False, "skipped_steps": ["b"], "lost_outputs": ["a"]}
    retry, fork = error["suggestions"]
    assert (retry["action"], fork["action"]) == ("retry", "fork")
    now = task
    for suggestion in (fork, retry):
        before = stage.tools["net.get"].count
        request = suggestion["request"]
        reply = await stage.window.good(request["method"], request["path"], request["body"])
        await stage.window.engine.clock.advance("1ms")
        now = await stage.window.good("GET", f"/v1/tasks/{reply['id']}")
        assert stage.tools["net.get"].count == before + 1
        assert (reply["id"] == task["id"]) == (suggestion is retry)
    assert now["status"] == "completed", "the third call goes well"


async def test_trying_again_says_if_it_may_act_twice() -> None:
    acted = fake(raises=[Impossible("done, and wrong", effect_state="made"), None], effect="once")
    async with TestEngine({"net.get": acted, "net.last": fake(effect="pure")}) as engine:
        stage = Stage(Window(engine), {})
        retry = (await stage.failed())["error"]["suggestions"][0]
        assert "a second time" in retry["label"]
        await stage.window.good("POST", retry["request"]["path"], retry["request"]["body"])
        await engine.clock.advance("1ms")
        assert acted.count == 2


@pytest.mark.parametrize("category", ["logic"])
async def test_an_optional_step_costs_what_needs_it(stage: Stage) -> None:
    task = await stage.failed(retry=0, on_error="continue")
    error = await stage.error_of(task)
    assert error["impact"] == {"task_continues": True, "skipped_steps": [], "lost_outputs": ["a"]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"answer": "retry", "tool": "net.last"}, "cannot go on with"),
        ({"answer": "retry", "at": "tomorrow"}, "is no time"),
        ({"answer": "skip", "tool": "net.other"}, "takes no time"),
    ],
)
@pytest.mark.parametrize("category", ["logic"])
async def test_an_answer_that_cannot_be_is_refused_and_stays_open(stage: Stage, body: JsonValue, why: str) -> None:
    task = await paused_with_its_fallback_used(stage)
    path = f"/v1/inbox/{task['pause']['id']}/answer"
    refusal = await stage.window.refused("POST", path, body)
    assert codes(refusal) == (422, "answer_invalid")
    assert why in refusal[1]["message"]
    assert (await stage.window.good("GET", f"/v1/inbox/{task['pause']['id']}"))["status"] == "open"


@pytest.mark.req("8.1")
async def test_errors_of_all_tasks_by_category_tool_code_and_time() -> None:
    tools = {
        "net.get": fake(raises=Transient("down"), effect="pure"),
        "net.put": fake(raises=Misconfigured("no such list", code="no_list")),
    }
    async with TestEngine(tools) as engine:
        window = Window(engine)
        for tool in tools:
            await window.start({"name": "p", "steps": [{"id": "a", "tool": tool, "with": {}, "retry": 1}]})
            await engine.clock.advance("5s")
        found = (await window.good("GET", "/v1/errors"))["items"]
        assert [(one["tool"], one["category"], one["code"], one["attempt"], one["step"]) for one in found] == [
            ("net.put", "configuration", "no_list", 1, "a"),
            ("net.get", "transient", "tool_transient", 2, "a"),
            ("net.get", "transient", "tool_transient", 1, "a"),
        ]
        assert set(found[0]) == {*ERROR_FIELDS, "task", "tool", "at"}

        async def count(query: str) -> int:
            return len((await window.good("GET", f"/v1/errors?{query}"))["items"])

        assert await count("category=transient") == 2
        assert await count("tool=net.put") == 1
        assert await count("code=no_list") == 1
        assert await count(f"task={found[0]['task']}") == 1
        assert await count(f"since={found[0]['at']}") == 1
        page = await window.good("GET", "/v1/errors?limit=2")
        rest = await window.good("GET", f"/v1/errors?limit=2&cursor={page['next_cursor']}")
        assert [one["id"] for one in (*page["items"], *rest["items"])] == [one["id"] for one in found]
        assert rest["next_cursor"] is None
        assert await window.good("GET", "/v1/errors", who=EVE) == {"items": [], "next_cursor": None}
        assert codes(await window.refused("GET", "/v1/errors?category=odd")) == (400, "bad_request")


@pytest.mark.req("8.3")
async def test_breakers_are_shown_with_whom_they_hold_back_and_can_be_reset() -> None:
    down = fake(raises=[*[Transient("down")] * 5, None], returns=1, effect="pure")
    async with TestEngine({"net.get": down}) as engine:
        window = Window(engine)
        step: JsonValue = {"id": "a", "tool": "net.get", "with": {}, "retry": 0}
        tasks = []
        for _ in range(6):
            tasks.append(await window.start({"name": "p", "steps": [step]}))
            await engine.clock.advance("1ms")
        task = tasks[-1]
        (shown,) = (await window.good("GET", "/v1/breakers"))["items"]
        assert (shown["tool"], shown["target"], shown["state"], shown["failures"]) == ("net.get", "net.get", "open", 5)
        assert shown["last_error"] == "tool_transient: down"
        assert shown["held_steps"] == [{"task": task["id"], "step": "a"}]
        held = await window.good("GET", f"/v1/tasks/{task['id']}")
        assert held["explain"]["waiting_on"] == {
            "kind": "breaker",
            "detail": "net.get",
            "until": shown["retry_at"],
            "ref": shown["id"],
        }
        (listed, *_) = (await window.good("GET", "/v1/tasks"))["items"]
        assert listed["explain"] == held["explain"]  # a list says as much of what runs
        reset = f"/v1/breakers/{shown['id']}/reset"
        assert codes(await window.refused("POST", reset, who=EVE)) == (404, "not_found")
        assert (await window.good("POST", reset))["state"] == "closed"
        await engine.clock.advance("1ms")
        assert (await window.good("GET", f"/v1/tasks/{task['id']}"))["status"] == "completed"
        assert codes(await window.refused("POST", reset)) == (404, "not_found")
