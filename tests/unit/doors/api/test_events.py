"""The journal through the api: pages, long polls and frames; every durable event once, in order."""

import asyncio
import json
from contextlib import aclosing
from typing import Any, cast

import pytest

from everstep import Ctx, tool
from everstep.domain.errors import EverstepError
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.values import JsonValue
from everstep.doors.api import Api
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools

LONG: dict[str, JsonValue] = {
    "name": "long",
    "steps": [{"id": f"s{at}", "tool": "test.echo", "with": {"value": at}} for at in range(8)],
}
Frame = dict[str, Any]


async def finished(window: Window, plan: dict[str, JsonValue] = ECHO) -> str:
    task = await window.start(plan)
    await window.engine.clock.advance("1s")
    return str(task["id"])


async def held(window: Window, tools: Tools) -> str:
    task = await window.start(HOLD)
    await tools.holding.wait()
    return str(task["id"])


class Watch:
    """A stream, frame by frame."""

    def __init__(self, api: Api, window: Window, target: str) -> None:
        self.frames = api.stream(window.request("GET", target))

    async def next(self) -> Frame:
        line = await asyncio.wait_for(anext(self.frames), 60)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        return cast("Frame", json.loads(line))

    async def until(self, kind: str) -> list[Frame]:
        seen = [await self.next()]
        while seen[-1]["type"] != kind:
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[Frame]:
        return [json.loads(line) async for line in self.frames]

    async def close(self) -> None:
        await self.frames.aclose()


# --- pages ---


async def test_pages_are_dense_and_end_at_the_head(window: Window) -> None:
    task = await finished(window, LONG)
    path = f"/v1/tasks/{task}/events"
    whole = await window.good("GET", path)
    seqs = [event["seq"] for event in whole["events"]]
    assert seqs == list(range(1, len(seqs) + 1))
    assert (whole["next_after"], whole["head_seq"], whole["live"]) == (seqs[-1], seqs[-1], True)
    after, paged = 0, []
    while True:
        page = await window.good("GET", f"{path}?after={after}&limit=5")
        paged += page["events"]
        after = page["next_after"]
        if page["live"]:
            break
        assert len(page["events"]) == 5
    assert paged == whole["events"]


async def test_a_page_shows_only_the_types_asked_for_but_goes_on_behind_them(window: Window) -> None:
    task = await finished(window, LONG)
    page = await window.good("GET", f"/v1/tasks/{task}/events?types=step.,task.completed&limit=500")
    assert {event["type"] for event in page["events"]} == {"step.completed", "task.completed"}
    assert page["next_after"] == page["head_seq"]


async def test_a_place_the_journal_does_not_have_is_refused(window: Window) -> None:
    task = await finished(window)
    status, error = await window.refused("GET", f"/v1/tasks/{task}/events?after=999")
    assert (status, error["code"], error["details"]["reason"]) == (410, "resync_required", "ahead")
    assert error["details"]["head_seq"] == (await window.good("GET", f"/v1/tasks/{task}"))["seq"]


@pytest.mark.parametrize("query", ["after=x", "limit=1.5", "wait=soon", "after=-1"])
async def test_a_wrong_page_is_refused(window: Window, query: str) -> None:
    task = await finished(window)
    assert codes(await window.refused("GET", f"/v1/tasks/{task}/events?{query}")) == (400, "bad_request")


async def test_a_long_poll_waits_for_news(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    seq = (await window.good("GET", f"/v1/tasks/{task}"))["seq"]
    target = f"/v1/tasks/{task}/events?after={seq}&wait=25"
    poll = asyncio.create_task(window.good("GET", target))
    await window.engine.clock.advance("1s")
    assert not poll.done()
    tools.release.set()
    page = await asyncio.wait_for(poll, 60)
    assert page["events"][0]["seq"] == seq + 1
    assert (await window.good("GET", f"/v1/tasks/{task}/events?after=0&wait=25"))["events"]


async def test_a_long_poll_without_news_ends_empty(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    seq = (await window.good("GET", f"/v1/tasks/{task}"))["seq"]
    page = await window.good("GET", f"/v1/tasks/{task}/events?after={seq}&wait=1")
    assert page == {"events": [], "next_after": seq, "head_seq": seq, "live": True}


async def test_a_long_poll_until_the_end_waits_for_that_or_a_pause(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    path = f"/v1/tasks/{task}/events?until=end&wait=25"
    poll = asyncio.create_task(window.good("GET", f"{path}&after=0"))
    await window.good("POST", f"/v1/tasks/{task}/pause", {"mode": "graceful"})
    await window.engine.clock.advance("1s")
    assert not poll.done(), "it is pausing, and nothing has ended"
    tools.release.set()
    page = await asyncio.wait_for(poll, 60)
    assert [event["seq"] for event in page["events"]] == list(range(1, page["next_after"] + 1))
    assert page["events"][-1]["type"] == "task.paused"
    poll = asyncio.create_task(window.good("GET", f"{path}&after={page['next_after']}"))
    await window.engine.clock.advance("1s")
    assert not poll.done(), "this pause has been seen"
    await window.good("POST", f"/v1/tasks/{task}/resume")
    assert (await asyncio.wait_for(poll, 60))["events"][-1]["type"] == "task.completed"
    again = await asyncio.wait_for(window.good("GET", f"{path}&after=0"), 60)
    assert again["live"]


# --- streams ---


async def test_without_a_place_the_stream_begins_with_the_task(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?ticks=0")
    hello, snapshot, live = [await watch.next() for _ in range(3)]
    assert hello == {
        "type": "hello", "v": 1, "server": "9.9", "incarnation": "w_1", "task": task, "first_seq": 1, "head_seq": 3,
        "heartbeat_s": 15,
    }  # fmt: skip
    assert (snapshot["seq"], snapshot["reset"], snapshot["task"]["status"]) == (3, False, "running")
    assert snapshot["task"] == await window.good("GET", f"/v1/tasks/{task}")
    assert live == {"type": "live", "seq": 3}
    tools.release.set()
    events = [await watch.next() for _ in range(2)]
    assert [frame["event"]["type"] for frame in events] == ["step.completed", "task.completed"]
    assert [frame["event"]["seq"] for frame in events] == [4, 5]
    await watch.close()


async def test_with_a_place_it_goes_on_from_there(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=1&until=end&ticks=0")
    seen = await watch.until("live")
    tools.release.set()
    seen += await watch.rest()
    assert [frame["type"] for frame in seen] == ["hello", "event", "event", "live", "event", "event"]
    assert [frame["event"]["seq"] for frame in seen if frame["type"] == "event"] == [2, 3, 4, 5]
    page = await window.good("GET", f"/v1/tasks/{task}/events?after=1")
    assert [frame["event"] for frame in seen if frame["type"] == "event"] == page["events"]


async def test_many_watchers_all_see_everything_once_whenever_they_come(window: Window) -> None:
    task = str((await window.start(LONG))["id"])

    async def all_seqs(after: int) -> list[int]:
        watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after={after}&until=end&ticks=0")
        return [frame["event"]["seq"] for frame in await watch.rest() if frame["type"] == "event"]

    watching = [asyncio.create_task(all_seqs(0)) for _ in range(5)]
    await window.engine.clock.advance("1s")
    head = (await window.good("GET", f"/v1/tasks/{task}"))["seq"]
    late = [await all_seqs(after) for after in range(head + 1)]
    assert [await one for one in watching] == [list(range(1, head + 1))] * 5
    assert late == [list(range(after + 1, head + 1)) for after in range(head + 1)]


async def test_an_ended_task_ends_its_stream_at_once(window: Window) -> None:
    task = await finished(window)
    seen = await Watch(window.api, window, f"/v1/tasks/{task}/events?until=end").rest()
    assert [frame["type"] for frame in seen] == ["hello", "snapshot", "live"]


async def test_words_after_the_end_do_not_keep_a_stream_open(window: Window) -> None:
    task = await finished(window)
    end = (await window.good("GET", f"/v1/tasks/{task}"))["seq"]
    await window.good("PATCH", f"/v1/tasks/{task}", {"title": "done at last"})
    for after in range(end + 2):
        watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after={after}&until=end&ticks=0")
        seen = await asyncio.wait_for(watch.rest(), 60)
        assert [frame["event"]["seq"] for frame in seen if frame["type"] == "event"] == [*range(after + 1, end + 2)]


async def test_a_place_ahead_of_the_head_is_answered_by_a_fresh_start(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=99&ticks=0")
    _, resync, snapshot, live = [await watch.next() for _ in range(4)]
    assert resync == {"type": "resync_required", "reason": "ahead", "first_seq": 1, "head_seq": 3}
    assert (snapshot["type"], snapshot["reset"], snapshot["seq"], live["seq"]) == ("snapshot", True, 3, 3)
    tools.release.set()
    assert (await watch.next())["event"]["seq"] == 4
    await watch.close()


async def test_only_the_types_asked_for_are_shown(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=0&until=end&types=task.&ticks=0")
    tools.release.set()
    types = [frame["event"]["type"] for frame in await watch.rest() if frame["type"] == "event"]
    assert types == ["task.created", "task.started", "task.completed"]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("/v1/tasks/t_zzzz/events", "not_found"),
        ("/v1/tasks/TASK/events?after=x", "bad_request"),
        ("/v1/tasks/TASK/events?ticks=maybe", "bad_request"),
        ("/v1/tasks/TASK/events?speed=1", "bad_request"),
        ("/v1/tasks", "bad_request"),
    ],
)
async def test_a_refusal_comes_instead_of_the_first_frame(window: Window, target: str, code: str) -> None:
    task = await finished(window)
    with pytest.raises(EverstepError) as refused:
        await Watch(window.api, window, target.replace("TASK", task)).next()
    assert refused.value.code == code


async def test_a_foreign_task_has_no_stream(window: Window) -> None:
    task = await finished(window)
    request = window.request("GET", f"/v1/tasks/{task}/events", who=EVE)
    with pytest.raises(EverstepError, match="no such task"):
        await anext(window.api.stream(request))


def test_a_door_that_can_do_both_streams_unless_a_page_is_asked_for() -> None:
    class Said(Window):
        def __init__(self) -> None:
            """Only to make requests."""

    say = Said().request
    api = Api.__new__(Api)
    assert api.streams(say("GET", "/v1/tasks/t_1/events?after=3"))
    assert not api.streams(say("GET", "/v1/tasks/t_1/events?limit=3"))
    assert not api.streams(say("GET", "/v1/tasks/t_1/events?wait=3"))
    assert not api.streams(say("GET", "/v1/tasks/t_1/events", accept="application/json"))
    assert not api.streams(say("GET", "/v1/tasks/t_1"))
    assert not api.streams(say("POST", "/v1/tasks/t_1/events"))


# --- between events ---


QUICK = load_settings({"events.heartbeat": "100ms", "events.tick_hz": 10}, env={})


async def test_silence_is_broken_by_a_heartbeat(window: Window, tools: Tools) -> None:
    window = Window(window.engine, QUICK)
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=3&ticks=0")
    *_, live, heartbeat = await watch.until("heartbeat")
    assert (live["type"], heartbeat["seq"]) == ("live", 3)
    assert heartbeat["at"].endswith("Z")
    await watch.close()


async def test_ticks_tell_how_far_a_call_has_come(window: Window, tools: Tools) -> None:
    window = Window(window.engine, QUICK)
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=3")
    tick = (await watch.until("tick"))[-1]
    assert (tick["task"], tick["seq"], tick["volatile"], tick["estimate"]["p50"]) == (task, 3, True, None)
    assert tick["progress"] == {"fraction": 0.0, "done": 0, "total": 1, "current": ["a"]}
    (step,) = tick["steps"]
    assert (step["id"], step["fraction"], step["note"]) == ("a", None, None)
    assert step["elapsed_s"] >= 0
    window.engine.sink.progress(TaskId("t_other"), StepPath("a"), 0.1, "not ours")
    window.engine.sink.progress(TaskId(task), StepPath("a"), 0.5, "half")
    tick = (await watch.until("tick"))[-1]
    assert (tick["steps"][0]["fraction"], tick["steps"][0]["note"]) == (0.5, "half")
    await watch.close()


async def test_text_that_a_call_streams_is_shown_with_the_ticks() -> None:
    spoke, go_on = asyncio.Event(), asyncio.Event()

    @tool("test.speak", effect="pure")
    async def speak(*, ctx: Ctx) -> dict[str, str]:
        """Say something while working."""
        ctx.stream("Solar ")
        ctx.stream("storage")
        spoke.set()
        await go_on.wait()
        ctx.stream(" is cheap")
        return {"text": "Solar storage is cheap"}

    first: JsonValue = {"id": "w", "tool": "wait", "with": {"for": "1s"}}
    plan: dict[str, JsonValue] = {"name": "speak", "steps": [first, {"id": "draft", "tool": "test.speak"}]}
    async with TestEngine([speak]) as engine:
        window = Window(engine)
        task = (await window.start(plan))["id"]
        watch = Watch(window.api, window, f"/v1/tasks/{task}/events?until=end")
        silent = Watch(window.api, window, f"/v1/tasks/{task}/events?until=end&ticks=0")
        for one in (watch, silent):
            await one.until("live")
        await engine.clock.advance("1s")
        await spoke.wait()
        said = (await watch.until("output"))[-1]
        assert {name: said[name] for name in ("task", "volatile", "step", "attempt", "n", "text")} == {
            "task": task, "volatile": True, "step": "draft", "attempt": 1, "n": 1, "text": "Solar storage",
        }  # fmt: skip
        go_on.set()
        rest = await watch.rest()
        outputs = [(frame["n"], frame["text"]) for frame in rest if frame["type"] == "output"]
        assert outputs == [(2, " is cheap")], "what was said last comes before the event that ends it"
        assert "output" not in {frame["type"] for frame in await silent.rest()}


async def test_a_paused_task_does_not_tick(window: Window, tools: Tools) -> None:
    window = Window(window.engine, QUICK)
    task = await window.start(LONG, pause_after="s0")
    await window.engine.clock.advance("1s")
    watch = Watch(window.api, window, f"/v1/tasks/{task['id']}/events")
    seen = await watch.until("heartbeat")
    assert [frame["type"] for frame in seen] == ["hello", "snapshot", "live", "heartbeat"]
    await watch.close()


async def test_the_engine_says_good_bye(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=3&ticks=0")
    await watch.until("live")
    window.api.close()
    assert await watch.rest() == [{"type": "bye", "reason": "shutdown", "seq": 3}]
    late = await Watch(window.api, window, f"/v1/tasks/{task}/events?ticks=0").rest()
    assert late[-1]["type"] == "bye"


async def test_a_journal_that_ends_with_the_engine_ends_the_stream(tools: Tools) -> None:
    async with TestEngine(tools.all()) as engine:
        window = Window(engine)
        task = await held(window, tools)
        watch = Watch(window.api, window, f"/v1/tasks/{task}/events?after=3&ticks=0")
        watching = asyncio.create_task(watch.rest())
        await engine.clock.advance("1s")
        tools.release.set()
    seen = await asyncio.wait_for(watching, 60)
    assert [frame["type"] for frame in seen] == ["hello", "live", "event", "bye"]
    assert (seen[2]["event"]["seq"], seen[3]) == (4, {"type": "bye", "reason": "shutdown", "seq": 4})


async def test_who_leaves_leaves_nothing_behind(window: Window, tools: Tools) -> None:
    task = await held(window, tools)
    before = len(asyncio.all_tasks())
    request = window.request("GET", f"/v1/tasks/{task}/events?after=0&ticks=0")
    async with aclosing(window.api.stream(request)) as lines:
        async for line in lines:
            if b'"live"' in line:
                break
    assert len(asyncio.all_tasks()) == before
