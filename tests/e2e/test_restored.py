"""A copy that is opened as a store: what was done after it is unknown to it, so nothing goes on by itself."""

import asyncio
from pathlib import Path

import pytest

from everstep import Engine, Plan, tool
from everstep.bootstrap import copy_store
from everstep.engine import control
from everstep.settings import load_settings
from everstep.tools import JsonObject

LARGE = 100_000


class Work:
    """A tool that waits until it is let go, and one that acts."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.release = asyncio.Event()
        self.sent = 0

    def tools(self) -> list[object]:
        @tool.pure("work.prepare")
        async def prepare() -> str:
            """Takes until it is let go; gives what is too large for an event."""
            self.called.set()
            await self.release.wait()
            return "x" * LARGE

        @tool("work.send")
        async def send(text: str) -> int:
            """Must not happen twice."""
            self.sent += 1
            return len(text)

        return [prepare, send]


def plan() -> Plan:
    plan = Plan("letter")
    text = plan.step("prepare", "work.prepare")
    plan.output(length=plan.step("send", "work.send", {"text": text}))
    return plan


def one_step(tool: str, arguments: JsonObject) -> Plan:
    return Plan.from_dict({"name": "short", "steps": [{"id": "only", "tool": tool, "with": arguments}]})


async def copied(folder: Path, work: Work) -> tuple[Path, str]:
    """A store that is copied while a call is under way, and then goes on to the end."""
    store, copy = folder / "everstep.db", folder / "copy.db"
    async with Engine(store, tools=work.tools()) as engine:
        await (await engine.start(one_step("text.join", {"texts": ["a"]}))).result()
        task = await engine.start(plan())
        waiting = await engine.start(one_step("wait", {"for": "1h"}))
        await work.called.wait()
        await asyncio.to_thread(copy_store, load_settings({"store": str(store)}), copy)
        assert (await waiting.refresh()).status == "running"
        work.release.set()
        assert (await task.result()).outputs == {"length": LARGE}
    assert work.sent == 1
    return copy, task.id


async def test_nothing_goes_on_before_somebody_has_looked(tmp_path: Path) -> None:
    work = Work()
    copy, task = await copied(tmp_path, work)
    async with Engine(copy, tools=work.tools()) as engine:
        ends = [(await one.result(on_pause="return")).status for one in await engine.list()]
        assert sorted(ends) == ["completed", "paused", "paused"]
        (asked,) = await engine.inbox(task)
        assert asked.type == "userRequested"
        assert "restored from a copy of 20" in asked.why
        assert work.sent == 1

        await (await engine.get(task)).resume(note="the letter was never sent there")
        assert (await (await engine.get(task)).result()).outputs == {"length": LARGE}
    assert work.sent == 2


async def test_it_is_asked_once(tmp_path: Path) -> None:
    work = Work()
    copy, task = await copied(tmp_path, work)
    async with Engine(copy, tools=work.tools()) as engine:
        await (await engine.get(task)).result(on_pause="return")
        await (await engine.get(task)).resume()
    async with Engine(copy, tools=work.tools()) as engine:
        assert (await (await engine.get(task)).result()).status == "completed"


async def test_killed_while_it_holds_back_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, pause, asked = Work(), control.pause, 0
    copy, _ = await copied(tmp_path, work)

    async def dies(*given: object, **named: object) -> object:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise MemoryError("gone")
        return await pause(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(control, "pause", dies)
    with pytest.raises(MemoryError):
        await Engine(copy, tools=work.tools()).open()
    monkeypatch.undo()
    async with Engine(copy, tools=work.tools()) as engine:
        for task in await engine.list():
            assert (await task.result(on_pause="return")).status in ("completed", "paused")
        assert {pause.type for pause in await engine.inbox()} == {"userRequested"}
    assert work.sent == 1


async def test_large_payloads_go_with_it(tmp_path: Path) -> None:
    work = Work()
    work.release.set()
    store, elsewhere = tmp_path / "everstep.db", tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with Engine(store, tools=work.tools()) as engine:
        ended = await (await engine.start(plan())).result()
        settings = load_settings({"store": str(store)})
        await asyncio.to_thread(copy_store, settings, elsewhere / "everstep.db")
    (elsewhere / "everstep.db.artifacts").rename(elsewhere / "artifacts")
    async with Engine(elsewhere / "everstep.db", tools=work.tools()) as engine:
        forked = await (await engine.get(ended.task_id)).fork("send")
        assert (await forked.result()).outputs == {"length": LARGE}
