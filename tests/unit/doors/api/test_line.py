"""All tasks of an owner as one stream: a cursor, notices, ticks, and nothing of anybody else's."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from everstep.domain.pressure import Reading
from everstep.domain.values import JsonValue
from everstep.doors.api import stream
from everstep.doors.api.line import START
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ECHO, EVE, HOLD, Window, codes
from tests.unit.engine.plans import Tools

Frame = dict[str, Any]
QUICK = load_settings({"events.heartbeat": "100ms"}, env={})


class Watch:
    """A stream of all tasks, frame by frame."""

    def __init__(self, window: Window, query: str = "", **more: Any) -> None:
        self._lines = window.api.stream(window.request("GET", f"/v1/events{query}", **more))

    async def next(self) -> Frame:
        frame: Frame = json.loads(await asyncio.wait_for(anext(self._lines), 60))
        return frame

    async def until(self, kind: str) -> list[Frame]:
        seen = [await self.next()]
        while seen[-1]["type"] != kind:
            seen.append(await self.next())
        return seen

    async def events(self, count: int) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        while len(found) < count:
            frame = await self.next()
            if frame["type"] == "event":
                found.append((frame["event"]["task"], frame["event"]["seq"]))
        return found

    async def close(self) -> None:
        await self._lines.aclose()


async def test_it_begins_with_a_cursor_and_goes_on_with_every_task(window: Window) -> None:
    watch = Watch(window)
    hello, live = await watch.until("live")
    assert (hello["type"], hello["cursor"], hello["heartbeat_s"]) == ("hello", START, 15)
    assert live == {"type": "live", "cursor": START}
    tasks = [str((await window.start(ECHO))["id"]) for _ in range(2)]
    told = await watch.events(10)
    for task in tasks:
        assert [seq for one, seq in told if one == task] == [1, 2, 3, 4, 5]
    await watch.close()


async def test_a_cursor_leads_on_from_where_it_was_given(window: Window) -> None:
    first = str((await window.start(ECHO))["id"])
    await window.engine.clock.advance("1s")
    watch = Watch(window, f"?after={START}")
    seen = await watch.until("live")
    events = [frame for frame in seen if frame["type"] == "event"]
    assert [(one["event"]["task"], one["event"]["seq"]) for one in events] == [(first, seq) for seq in range(1, 6)]
    await watch.close()
    again = Watch(window, f"?after={events[2]['cursor']}")
    assert await again.events(2) == [(first, 4), (first, 5)]
    second = str((await window.start(ECHO))["id"])
    assert await again.events(5) == [(second, seq) for seq in range(1, 6)]
    await again.close()


async def test_nobody_hears_of_the_tasks_of_others(window: Window) -> None:
    watch = Watch(window, who=EVE)
    await watch.until("live")
    await window.start(ECHO)
    mine = (await window.good("POST", "/v1/tasks", {"plan": dict(ECHO)}, who=EVE))["id"]
    assert [task for task, _ in await watch.events(5)] == [mine] * 5
    await watch.close()
    again = Watch(window, f"?after={START}", who=EVE)
    assert {task for task, _ in await again.events(5)} == {mine}
    await again.close()


@pytest.mark.parametrize(("after", "reason"), [("ffff-00000000", "ahead"), ("2-00000000", "expired")])
async def test_a_place_that_is_not_there_is_answered_by_a_fresh_start(window: Window, after: str, reason: str) -> None:
    await window.start(ECHO)
    await window.engine.clock.advance("1s")
    watch = Watch(window, f"?after={after}")
    _, resync, live = await watch.until("live")
    assert (resync["type"], resync["reason"], resync["cursor"]) == ("resync_required", reason, live["cursor"])
    task = str((await window.start(ECHO))["id"])
    assert await watch.events(1) == [(task, 1)]
    await watch.close()
    assert codes(await window.refused("GET", f"/v1/events?after={after}&limit=5")) == (410, "resync_required")


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", "?until=end", "?after=1", "?speed=1"])
async def test_what_means_nothing_is_refused(window: Window, query: str) -> None:
    assert codes(await window.refused("GET", f"/v1/events{query}"))[0] == 400


async def test_a_page_waits_for_news_and_gives_the_next_cursor(window: Window) -> None:
    page = await window.good("GET", "/v1/events?wait=25")
    assert page == {"events": [], "next_after": START, "head_seq": None, "live": True}
    poll = asyncio.create_task(window.good("GET", f"/v1/events?after={START}&wait=25"))
    await window.engine.clock.advance("1s")
    assert not poll.done()
    task = (await window.start(ECHO))["id"]
    page = await asyncio.wait_for(poll, 60)
    seen = page["events"]
    while not page["live"] or len(seen) < 5:
        page = await window.good("GET", f"/v1/events?after={page['next_after']}&limit=2&wait=1")
        seen += page["events"]
    assert [(event["task"], event["seq"]) for event in seen] == [(task, seq) for seq in range(1, 6)]
    empty = await window.good("GET", f"/v1/events?after={page['next_after']}&types=pause.")
    assert (empty["events"], empty["live"]) == ([], True)


async def test_types_choose_among_the_events(window: Window) -> None:
    watch = Watch(window, "?types=task.completed,step.")
    await watch.until("live")
    await window.start(ECHO)
    assert [seq for _, seq in await watch.events(2)] == [4, 5]
    await watch.close()


async def test_running_tasks_tick_once_a_second_for_those_who_ask(window: Window, tools: Tools) -> None:
    task = str((await window.start(HOLD))["id"])
    await tools.holding.wait()
    before = len(asyncio.all_tasks())
    watch = Watch(window, "?ticks=1")
    tick = (await watch.until("tick"))[-1]
    assert (tick["task"], tick["seq"], tick["steps"][0]["id"]) == (task, 3, "a")
    await watch.close()
    assert len(asyncio.all_tasks()) == before


async def test_silence_is_broken_by_a_heartbeat_with_the_cursor(window: Window) -> None:
    watch = Watch(Window(window.engine, QUICK))
    *_, live, heartbeat = await watch.until("heartbeat")
    assert heartbeat["cursor"] == live["cursor"]
    await watch.close()


async def test_a_halt_is_noticed_by_everybody(window: Window) -> None:
    watch, theirs = Watch(window), Watch(window, who=EVE)
    for one in (watch, theirs):
        await one.until("live")
    await window.good("PUT", "/v1/halt", {"on": True, "note": "enough"})
    await window.good("PUT", "/v1/halt", {"on": False})
    for one in (watch, theirs):
        first, second = await one.next(), await one.next()
        assert (first["type"], first["topic"], first["data"]["on"], first["data"]["note"]) == (
            "notice",
            "halt",
            True,
            "enough",
        )
        assert second["data"] == {"on": False}
        await one.close()


async def test_load_tools_and_the_engine_itself_are_noticed_by_everybody(tools: Tools) -> None:
    dial = Dial()
    async with TestEngine(tools.all(), gauge=dial) as engine:
        window = Window(engine)
        watch = Watch(window, who=EVE)
        await watch.until("live")
        dial.free = 1
        await engine.clock.advance("6s")
        dial.free = dial.total
        await engine.clock.advance("6s")
        await window.good("POST", "/v1/tools/test.echo/health")
        await window.good("POST", "/v1/tools/test.echo/health")  # nothing new: nobody is told
        await engine.close()
        told = [one for one in await watch.until("bye") if one["type"] == "notice"]
        assert [(one["topic"], one["data"].get("pressed")) for one in told[:2]] == [("load", "memory"), ("load", None)]
        assert [(one["topic"], one["data"].get("status")) for one in told[2:]] == [
            ("tool", "unknown"),
            ("server", None),
            ("worker", "draining"),
        ]
        await watch.close()


class Dial:
    """A gauge that tests turn."""

    total = 10 * 1024**3

    def __init__(self) -> None:
        self.free = self.total

    def read(self) -> Sequence[Reading]:
        return [Reading(what="memory", free=self.free, total=self.total)]


async def test_a_breaker_that_opens_is_noticed_by_its_owner_only(window: Window, tools: Tools) -> None:
    tools.raises["bad"] = [ConnectionError("refused")]
    plan: dict[str, JsonValue] = {
        "name": "bad",
        "steps": [{"id": "a", "tool": "test.echo", "with": {"label": "bad"}, "retry": {"times": 10}}],
    }
    watch, theirs = Watch(window, "?types=task.failed"), Watch(window, "?types=task.failed", who=EVE)
    for one in (watch, theirs):
        await one.until("live")
    await window.start(plan)
    await window.engine.clock.advance("2m")
    notice = (await watch.until("notice"))[-1]
    assert (notice["topic"], notice["data"]["tool"], notice["data"]["state"]) == ("breaker", "test.echo", "open")
    window.api.close()
    assert [frame["type"] for frame in await theirs.until("bye")] == ["bye"]
    await watch.close()
    await theirs.close()


async def test_the_engine_says_good_bye(window: Window) -> None:
    watch = Watch(window)
    live = (await watch.until("live"))[-1]
    window.api.close()
    assert await watch.next() == {"type": "bye", "reason": "shutdown", "cursor": live["cursor"]}
    assert (await Watch(window).until("bye"))[-1]["reason"] == "shutdown"
    await watch.close()


@pytest.mark.req("3.6")
async def test_who_is_behind_at_the_good_bye_goes_on_from_what_it_was_given(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PAGE", 2)
    task = str((await window.start(ECHO))["id"])
    await window.engine.clock.advance("1s")
    watch = Watch(window, f"?after={START}")
    assert await watch.events(1) == [(task, 1)]
    window.api.close()
    *_, last, bye = await watch.until("bye")
    assert (last["event"]["seq"], bye["cursor"]) == (2, last["cursor"])
    await watch.close()
