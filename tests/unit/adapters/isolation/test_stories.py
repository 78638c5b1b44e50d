"""Everything that goes wrong at once: each is stopped by its own limit, and whoever is beside it does not notice."""

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from everstep import Plan, Task
from everstep.adapters.isolation import child
from everstep.domain.values import JsonObject
from everstep.testing import TestEngine
from everstep.testing.sim_hungry import hungry_tools

STORIES: dict[str, tuple[str, JsonObject, JsonObject, str | None]] = {
    "memory bomb": ("sim.memory", {"mb": 2000, "hold": 60}, {"limits": {"memory": "150MB"}}, "limit_memory"),
    "CPU burner": ("sim.cpu", {"seconds": 600}, {"limits": {"cpu_time": "1s"}}, "limit_cpu"),
    "fork bomb": ("sim.fork", {"n": 300}, {}, "limit_processes"),
    "disk filler": ("sim.write", {"files": 200, "bytes": 2_000_000}, {"limits": {"disk": "20MB"}}, "limit_disk"),
    "too many files": ("sim.open", {"files": 1000}, {}, "os_emfile"),
    "hung": ("sim.hang", {}, {"timeout": "3s"}, "timeout"),
    "deaf": ("sim.hang", {"ignore_term": True}, {"timeout": "3s"}, "timeout"),
    "output flood": ("sim.output", {"bytes": 30_000_000}, {}, None),
    "left behind": ("sim.fork", {"n": 3, "setsid": True}, {}, None),
    "sibling": ("sim.memory", {"mb": 20, "hold": 0.5}, {}, None),
    "other sibling": ("sim.cpu", {"seconds": 0.5}, {}, None),
}


def plan_of(story: str) -> Plan:
    tool, arguments, more, _ = STORIES[story]
    plan = Plan("story")
    plan.step("call", tool, arguments, retry=0, **more)
    return plan


async def ended(task: Task) -> dict[str, Any]:
    async for event in task.events():
        if event.type in {"attempt.failed", "attempt.timed_out", "step.completed"}:
            return dict(event.data)
    raise AssertionError([e.type async for e in task.events(follow=False)])


@pytest.mark.req("7.1", "N.2", "TP.4", "R.1", "R.4", "6.5")
@pytest.mark.parametrize("groups", [True, False], ids=["group", "watched"])
async def test_each_is_stopped_by_its_own_limit(tmp_path: Path, groups: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not groups:
        monkeypatch.setattr(child, "best_roots", lambda: None)
    config: JsonObject = {"containment.uid_base": 0}
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    here = psutil.Process()
    files, memory = here.num_fds(), here.memory_info().rss
    async with TestEngine(hungry_tools(), config=config, workspace=tmp_path) as engine:
        tasks = {story: await engine.start(plan_of(story)) for story in STORIES}
        ticking = asyncio.ensure_future(let_time_pass(engine))
        told = dict(zip(tasks, await asyncio.gather(*map(ended, tasks.values())), strict=True))
        ticking.cancel()
        for story, (_, _, _, code) in STORIES.items():
            assert (told[story].get("error") or {}).get("code") == code, story
    assert told["output flood"]["usage"]["bytes_out"] == pytest.approx(30_000_000, rel=0.1)
    assert 1.0 <= told["CPU burner"]["usage"]["cpu_s"] < 5
    for story in ("hung", "deaf"):  # out of time, and counted all the same
        assert told[story]["usage"]["cpu_s"] > 0
        assert told[story]["usage"]["files_open"] > 0
        assert told[story]["usage"]["memory_peak_bytes"] > 1_000_000
    truth = on_disk(tmp_path)
    assert told["disk filler"]["usage"]["counts"]["disk_bytes"] == pytest.approx(truth, rel=0.1)
    assert truth < 200_000_000  # of the 400 MB it wants
    bomb = told["memory bomb"]["error"]["details"]
    assert (bomb["limit"], bomb["max"]) == ("memory", 150_000_000)
    assert 0 < bomb["excess"] == bomb["used"] - bomb["max"]
    assert {one.pid for one in here.children(recursive=True)} <= before
    assert here.num_fds() <= files + 5
    assert here.memory_info().rss < memory + 100_000_000


def on_disk(folder: Path) -> int:
    """Bytes that the filler's files take up."""
    return sum(file.stat().st_blocks * 512 for file in folder.glob("sim-*"))


async def let_time_pass(engine: TestEngine) -> None:
    """The engine's clock, for those who would hang for ever."""
    while True:
        await asyncio.sleep(0.5)
        await engine.clock.advance("200ms")
