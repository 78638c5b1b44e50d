"""The inside of a task, its questions, and what an engine offers: steps, values, pauses, plans, tools, health."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everstep.adapters.telemetry.logs import LogSink
from everstep.domain.access import Principal
from everstep.domain.errors import Unavailable
from everstep.domain.events import Recorded, Who
from everstep.domain.values import JsonValue
from everstep.doors.api import context
from everstep.ports.tool import Misconfigured, NeedsInput
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from everstep.wire.event import decode
from tests.unit.doors.api.window import ANA, BEN, ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools

EACH: dict[str, JsonValue] = {
    "name": "each",
    "steps": [
        {"id": "all", "tool": "test.echo", "for_each": [1, 2, 3], "with": {"value": "${item}"}},
        {"id": "last", "tool": "test.echo", "with": {"value": "${all}"}},
    ],
}


def asking(label: str = "x") -> dict[str, JsonValue]:
    step: dict[str, JsonValue] = {"id": "a", "tool": "test.echo", "with": {"label": label}, "on_error": "pause"}
    return {"name": "asking", "steps": [step, {"id": "b", "tool": "test.echo", "with": {"value": "${a.value}"}}]}


async def asked(window: Window, tools: Tools, error: Exception) -> dict[str, Any]:
    """A task that waits for someone because its first call raised."""
    tools.raises["x"] = [error, None]
    task = await window.start(asking())
    return await window.finish(task["id"])


# --- steps ---


async def test_of_a_long_list_only_what_is_shown_is_decoded(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    every: list[JsonValue] = [*range(40)]
    each: JsonValue = {"id": "all", "tool": "test.echo", "for_each": every, "with": {"value": "${item}"}}
    task = (await window.start({"name": "long", "steps": [each, {"id": "last", "tool": "test.echo"}]}))["id"]
    done = await window.finish(task)
    assert (done["status"], done["seq"] > 80) == ("completed", True)
    decoded: list[str | None] = []

    def counted(encoded: bytes) -> Recorded:
        event = decode(encoded)
        decoded.append(event.step)
        return event

    monkeypatch.setattr(context, "decode", counted)
    await window.good("GET", f"/v1/tasks/{task}")
    assert decoded == ["all", "all", "last", "last"]
    decoded.clear()
    step = await window.good("GET", f"/v1/tasks/{task}/steps/all[7]")
    assert (len(step["attempts"]), decoded) == (1, ["all[7]", "all[7]"])
    decoded.clear()
    await window.good("GET", f"/v1/tasks/{task}?include=attempts")
    assert len(decoded) == done["seq"] - 1


async def test_steps_come_in_order_with_their_items_page_by_page(window: Window) -> None:
    task = await window.start(EACH)
    await window.finish(task["id"])
    path = f"/v1/tasks/{task['id']}/steps"
    whole = await window.good("GET", path)
    assert [step["id"] for step in whole["items"]] == ["all", "all[0]", "all[1]", "all[2]", "last"]
    assert whole["next_cursor"] is None
    assert all(step["output"] is None and step["attempts"] == [] for step in whole["items"])
    page = await window.good("GET", f"{path}?limit=2")
    paged = [step["id"] for step in page["items"]]
    while page["next_cursor"] is not None:
        page = await window.good("GET", f"{path}?limit=2&cursor={page['next_cursor']}")
        paged += [step["id"] for step in page["items"]]
    assert paged == [step["id"] for step in whole["items"]]
    assert codes(await window.refused("GET", f"{path}?cursor=zzz")) == (400, "bad_request")


async def test_a_step_alone_has_its_values_and_attempts(window: Window) -> None:
    task = await window.start(EACH)
    await window.finish(task["id"])
    step = await window.good("GET", f"/v1/tasks/{task['id']}/steps/all%5B1%5D")
    assert step["input"]["value"] == {"value": 2}
    assert step["output"]["value"] == {"value": 2}
    assert [attempt["status"] for attempt in step["attempts"]] == ["succeeded"]
    whole = await window.good("GET", f"/v1/tasks/{task['id']}/steps/all")
    assert whole["counts"] == {"total": 3, "completed": 3, "failed": 0, "skipped": 0}
    assert whole["summary"] == "3 of 3"
    attempt = await window.good("GET", f"/v1/tasks/{task['id']}/steps/all%5B1%5D/attempts/1")
    assert (attempt["number"], attempt["effect_state"]) == (1, None)
    for missing in ("steps/zzz", "steps/all%5B9%5D", "steps/last/attempts/2", "steps/last/attempts/x"):
        assert codes(await window.refused("GET", f"/v1/tasks/{task['id']}/{missing}")) == (404, "not_found")


async def test_a_large_value_is_shown_by_reference_and_can_be_fetched(window: Window) -> None:
    large = "x" * 40_000
    plan: dict[str, JsonValue] = {
        "name": "large", "inputs": {"text": "string"},
        "steps": [{"id": "a", "tool": "test.echo", "with": {"value": "${inputs.text}"}}],
        "outputs": {"text": "${a.value}"},
    }  # fmt: skip
    task = await window.start(plan, inputs={"text": large})
    done = await window.finish(task["id"])
    assert (done["inputs"], done["outputs"]) == ({"text": large}, {"text": large})
    step = await window.good("GET", f"/v1/tasks/{task['id']}/steps/a")
    artifact = step["output"]["artifact"]
    response = await window.ask("GET", f"/v1/tasks/{task['id']}/artifacts/{artifact}")
    assert response.json() == {"value": large}
    assert response.headers["content-disposition"] == "attachment"
    other = await window.start(ECHO)
    path = f"/v1/tasks/{other['id']}/artifacts/{artifact}"
    assert codes(await window.refused("GET", path)) == (404, "not_found")


async def test_the_plan_is_what_was_asked_in_normal_form(window: Window) -> None:
    task = await window.start(ECHO)
    shown = await window.good("GET", f"/v1/tasks/{task['id']}/plan")
    assert (shown["revision"], shown["digest"]) == (1, task["plan"]["digest"])
    assert shown["plan"] == ECHO


# --- logs ---


async def test_the_lines_of_a_task_are_found_in_the_log(tools: Tools, tmp_path: Path) -> None:
    settings = load_settings({"store": str(tmp_path / "everstep.db")}, env={})
    async with TestEngine(tools.all()) as engine:
        window = Window(engine, settings)
        task = (await window.start(ECHO))["id"]
        path = f"/v1/tasks/{task}/logs"
        assert await window.good("GET", path) == {"items": [], "next_after": 0}
        sink = LogSink(settings.log_path, bytes_max=1500)
        for number in range(12):
            sink.note(f"line {number}", task=task, step="a" if number % 2 else "b", attempt=1 + number % 3)
            sink.note("of another", task="t_other", said=task)
        sink.note("warned", level="warning", task=task, step="a", attempt=1, why="x")
        sink.close()
        with settings.log_path.open("ab") as file:
            file.write(b'{"torn": "' + task.encode() + b"\n[" + json.dumps(task).encode() + b"]\n")
        found = await window.good("GET", path)
        assert [one["message"] for one in found["items"]] == [*(f"line {n}" for n in range(12)), "warned"]
        assert list(found["items"][0]) == ["n", "at", "step", "attempt", "level", "message", "fields"]
        first = await window.good("GET", f"{path}?limit=5")
        rest = await window.good("GET", f"{path}?after={first['next_after']}")
        assert [one["n"] for one in first["items"] + rest["items"]] == list(range(1, 14))
        last = await window.good("GET", f"{path}?tail=2&step=a")
        assert ([one["message"] for one in last["items"]], last["next_after"]) == (["line 11", "warned"], 13)
        only = await window.good("GET", f"{path}?step=a&attempt=2&level=info")
        assert [one["message"] for one in only["items"]] == ["line 1", "line 7"]
        (warned,) = (await window.good("GET", f"{path}?level=warning"))["items"]
        assert (warned["message"], warned["fields"]) == ("warned", {"why": "x"})
        assert codes(await window.refused("GET", f"{path}?level=loud")) == (400, "bad_request")


# --- pauses ---


async def test_the_inbox_lists_what_waits_oldest_first(window: Window, tools: Tools) -> None:
    first = await asked(window, tools, Misconfigured("no such host"))
    await window.engine.clock.advance("1m")
    second = await asked(window, tools, NeedsInput("To whom?", {"type": "string"}))
    inbox = await window.good("GET", "/v1/inbox")
    assert [one["task"] for one in inbox["items"]] == [first["id"], second["id"]]
    assert [one["reason"]["type"] for one in inbox["items"]] == ["toolError", "inputRequired"]
    assert inbox["items"][0] == first["pause"]
    only = await window.good("GET", f"/v1/inbox?task={second['id']}")
    assert [one["id"] for one in only["items"]] == second["pauses"]
    assert len((await window.good("GET", "/v1/inbox?type=toolError"))["items"]) == 1
    assert (await window.good("GET", "/v1/inbox", who=EVE))["items"] == []
    assert codes(await window.refused("GET", f"/v1/inbox/{first['pauses'][0]}", who=EVE)) == (404, "not_found")
    assert codes(await window.refused("GET", "/v1/inbox/p_zzz")) == (404, "not_found")


async def test_every_listed_answer_does_what_it_says(window: Window, tools: Tools) -> None:
    expected = {"retry": "completed", "skip": "paused", "fail": "failed", "cancel": "cancelled"}
    for answer, status in expected.items():
        task = await asked(window, tools, Misconfigured("no such host"))
        listed = {one["answer"]: one["request"] for one in task["pause"]["answers"]}
        request = listed[answer]
        pause = await window.good(request["method"], request["path"], request["body"])
        assert (pause["status"], pause["answered"]["answer"]) == ("answered", answer)
        assert pause["answered"]["actor"] == {"kind": "human", "id": "ana", "via": "http"}
        assert (await window.finish(task["id"]))["status"] == status


async def test_answers_with_a_value(window: Window, tools: Tools) -> None:
    task = await asked(window, tools, Misconfigured("no such host"))
    path = f"/v1/inbox/{task['pauses'][0]}/answer"
    bad: list[tuple[JsonValue, int, str]] = [
        ({}, 400, "bad_request"),
        ({"answer": 1}, 400, "bad_request"),
        ({"answer": "approve"}, 422, "answer_invalid"),
        ({"answer": "retry_with"}, 422, "answer_invalid"),
        ({"answer": "retry_with", "arguments": [1]}, 400, "bad_request"),
        ({"answer": "supply_output", "output": 1, "colour": "x"}, 422, "unknown_field"),
    ]
    for body, status, code in bad:
        assert codes(await window.refused("POST", path, body)) == (status, code)
    given: JsonValue = {"answer": "supply_output", "output": {"value": 7}, "note": "known"}
    await window.good("POST", path, given)
    done = await window.finish(task["id"])
    assert done["status"] == "completed"
    step = await window.good("GET", f"/v1/tasks/{task['id']}/steps/b")
    assert step["output"]["value"] == {"value": 7}


async def test_a_question_is_answered_by_its_schema(window: Window, tools: Tools) -> None:
    task = await asked(window, tools, NeedsInput("To whom?", {"type": "string"}))
    path = f"/v1/inbox/{task['pauses'][0]}/answer"
    assert codes(await window.refused("POST", path, {"answer": "answer", "value": 1})) == (422, "answer_invalid")
    assert (await window.good("POST", path, {"answer": "answer", "value": "ana"}))["status"] == "answered"
    assert (await window.finish(task["id"]))["status"] == "completed"


async def test_one_answer_wins_and_the_same_again_is_fine(window: Window, tools: Tools) -> None:
    task = await asked(window, tools, Misconfigured("no such host"))
    path = f"/v1/inbox/{task['pauses'][0]}/answer"
    body: JsonValue = {"answer": "skip", "note": "no"}
    first = await window.good("POST", path, body)
    assert await window.good("POST", path, body) == first
    late: list[tuple[JsonValue, Who]] = [({"answer": "retry"}, ANA), (body, BEN), ({"answer": "skip"}, ANA)]
    for other, who in late:
        status, error = await window.refused("POST", path, other, who=who)
        assert (status, error["code"]) == (409, "already_answered")
        assert error["message"] == "human ana has answered already: skip"
        assert error["details"]["answered"] == first["answered"]


async def test_a_withdrawn_pause_cannot_be_answered(window: Window, tools: Tools) -> None:
    task = await asked(window, tools, Misconfigured("no such host"))
    await window.good("POST", f"/v1/tasks/{task['id']}/cancel")
    shown = await window.good("GET", f"/v1/inbox/{task['pauses'][0]}")
    assert (shown["status"], shown["answers"], shown["answered"]) == ("withdrawn", [], None)
    path = f"/v1/inbox/{task['pauses'][0]}/answer"
    assert codes(await window.refused("POST", path, {"answer": "retry"})) == (409, "already_answered")


async def test_what_the_local_door_is_told_its_engine_carries(
    window: Window, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: list[str] = []
    monkeypatch.setattr(window.engine.desk, "carry", carried.append)
    task = await asked(window, tools, Misconfigured("no such host"))
    path = f"/v1/inbox/{task['pauses'][0]}/answer"
    await window.good("POST", path, {"answer": "retry"}, local=True)
    assert carried == [task["id"]]
    held = await window.good("POST", "/v1/tasks", {"plan": HOLD}, local=True)
    await window.good("POST", f"/v1/tasks/{held['id']}/resume", local=True)
    await window.good("POST", "/v1/tasks", {"plan": HOLD, "attach": True}, local=True)
    await window.start(ECHO)
    assert carried == [task["id"], held["id"], held["id"], held["id"]]


# --- plans and tools ---


@pytest.mark.req("Dep.2", "W.1")
async def test_the_problems_of_a_plan_are_enough_to_repair_it(window: Window) -> None:
    """What a model would do: send it, read what is wrong, mend exactly that."""
    steps: list[Any] = [
        {"id": "a", "tool": "test.ecko", "with": {"value": 1}},
        {"id": "b", "tool": "test.echo", "with": {"value": "${aa.value}"}, "retries": 2},
        {"id": "b", "tool": "test.echo", "needs": ["c"], "parallel": 2},
    ]
    plan: dict[str, Any] = {"name": "p", "steps": steps, "outputs": {"x": "${b.value}"}}
    status, error = await window.refused("POST", "/v1/tasks", {"plan": plan})
    problems = (await window.good("POST", "/v1/plans/check", {"plan": plan}))["problems"]
    assert (status, error["code"]) == (422, "plan_invalid")
    assert error["details"]["problems"] == problems
    assert len({problem["code"] for problem in problems}) >= 4
    assert (await window.good("GET", "/v1/tasks"))["items"] == []
    for _ in range(10):
        found = await window.good("POST", "/v1/plans/check", {"plan": plan})
        if found["valid"]:
            break
        mend(plan, found["problems"][0])
    task = await window.start(plan)
    await window.engine.clock.advance("1s")
    assert (await window.good("GET", f"/v1/tasks/{task['id']}"))["status"] == "completed"


def mend(plan: dict[str, Any], problem: dict[str, Any]) -> None:
    """By its path, and by what it suggests."""
    *way, last = problem["path"].strip("/").split("/")
    place: Any = plan
    for part in way:
        place = place[int(part) if isinstance(place, list) else part]
    match problem["code"].partition(".")[2]:
        case "duplicate_id" | "duplicate_name":
            place[last] = "c"
        case "unknown_key" | "key_conflict":
            del place[last]
        case _ if problem["suggestion"]:
            if isinstance(place, list):
                place[int(last)] = problem["suggestion"]
            else:
                bound = "${" in str(place[last])
                place[last] = place[last].replace("aa", problem["suggestion"]) if bound else problem["suggestion"]
        case _:
            del place[int(last) if isinstance(place, list) else last]


@pytest.mark.req("Dep.2")
async def test_five_hundred_steps_are_checked_at_once(window: Window) -> None:
    """Seconds of the processor, the best of three: the machine may have other things to do."""
    steps: list[Any] = [{"id": "s0", "tool": "test.echo"}]
    steps += [{"id": f"s{n}", "tool": "test.echo", "with": {"value": f"${{s{n - 1}.value}}"}} for n in range(1, 500)]
    spent = []
    for _ in range(3):
        began = time.process_time()
        assert (await window.good("POST", "/v1/plans/check", {"plan": {"name": "p", "steps": steps}}))["valid"]
        spent.append(time.process_time() - began)
    assert min(spent) < 0.3


async def test_a_plan_is_checked_without_being_started(window: Window) -> None:
    plan: dict[str, JsonValue] = {
        "name": "p",
        "inputs": {"n": "integer"},
        "steps": [{"id": "a", "tool": "test.echo", "with": {"value": "${inputs.n}"}}, {"id": "b", "tool": "test.once"}],
        "finally": [{"id": "c", "tool": "test.echo"}],
    }
    checked = await window.good("POST", "/v1/plans/check", {"plan": plan, "inputs": {"n": 1}})
    assert (checked["valid"], checked["problems"]) == (True, [])
    estimate = checked["summary"].pop("estimate")
    assert (estimate["p50"], estimate["basis"], estimate["n"]) == (None, None, 0), "no history, no number"
    assert checked["summary"] == {
        "steps": 3,
        "approvals": [],
        "effects": {"pure": 1, "once": 1},
        "asks": ["b"],
        "secrets": [],
        "untrusted": [],
    }
    checked = await window.good("POST", "/v1/plans/check", {"plan": plan, "inputs": {"n": "x", "m": 1}})
    assert not checked["valid"]
    assert {problem["code"] for problem in checked["problems"]} == {"input.invalid", "input.unknown"}
    checked = await window.good("POST", "/v1/plans/check", {"plan_text": "steps: 1"})
    assert (checked["valid"], checked["summary"]) == (False, None)
    assert len(checked["problems"]) == 2
    assert (await window.good("GET", "/v1/tasks"))["items"] == []


async def test_the_schema_of_a_plan_knows_the_tools(window: Window) -> None:
    schema = await window.good("GET", "/v1/schemas/plan")
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert "test.echo" in json.dumps(schema)


@pytest.mark.req("C.3")
async def test_tools_are_listed_and_shown(window: Window) -> None:
    listed = await window.good("GET", "/v1/tools")
    names = [one["name"] for one in listed["items"]]
    assert names == sorted(names)
    assert {"test.echo", "test.once", "wait"} <= set(names)
    for name in names:  # as `everstep tools NAME --json` shows each
        one = await window.good("GET", f"/v1/tools/{name}")
        assert (one["name"], one["input_schema"]["type"]) == (name, "object")
        assert one["version"]
        assert "output_schema" in one
        assert one["effect"] in {"pure", "idempotent", "verifiable", "once"}
    echo = await window.good("GET", "/v1/tools/test.echo")
    assert (echo["effect"], echo["health"]["status"]) == ("pure", "unknown")
    assert echo["input_schema"]["properties"].keys() == {"value", "label"}
    status, error = await window.refused("GET", "/v1/tools/test.ecko")
    assert (status, error["code"]) == (404, "not_found")
    assert "did you mean 'test.echo'?" in error["message"]


# --- health ---


async def test_health_tells_how_the_engine_is(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    health = await window.good("GET", "/v1/health")
    assert (health["status"], health["ready"], health["reason"]) == ("ok", True, None)
    assert (health["version"], health["incarnation"]) == ("9.9", "w_1")
    assert (health["queue"], health["load"]["tasks"]) == ({"queued": 0, "stalled": 0}, 0)
    assert health["load"]["max"] == health["limits"]["tasks"]
    assert health["streams"] == {"open": 0, "dropped": 0}
    assert (await window.ask("GET", "/v1/ready")).status == 200

    async def away() -> None:
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(window.engine.desk, "info", away)
    health = await window.good("GET", "/v1/health")
    assert (health["status"], health["reason"], health["store"]) == ("degraded", "the disk is gone", None)


async def test_health_tells_an_owner_nothing_of_the_others(window: Window) -> None:
    await window.start(ECHO)
    await window.engine.clock.advance("1s")
    asked = window.request("GET", "/v1/health", who=EVE)
    reader = Principal(owner=EVE.owner, actor=EVE.actor, scopes=frozenset({"read"}))
    before: Any = (await window.api.handle(replace(asked, principal=reader))).json()
    assert before["store"]["tasks"]["completed"] == 0
    assert (before["store"]["events"], before["load"], before["pools"], before["rates"], before["streams"]) == (
        None,
    ) * 5
    await window.start(ECHO)
    assert (await window.api.handle(replace(asked, principal=reader))).json() == before
    assert (await window.good("GET", "/v1/health"))["store"]["tasks"]["completed"] >= 1


async def test_health_answers_when_nothing_else_does() -> None:
    engine = TestEngine()
    async with engine:
        window = Window(engine)
    health = await window.good("GET", "/v1/health")
    assert (health["status"], health["ready"]) == ("degraded", False)
    assert (await window.ask("GET", "/v1/ready")).status == 503
