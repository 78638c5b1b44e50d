"""How long a call may take, by the type of its tool; a step may say otherwise, and what is cut off is gone."""

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from everstep import Plan, PlanError
from everstep.domain.values import JsonObject
from everstep.testing import TestEngine

CONFIG: JsonObject = {
    "containment.uid_base": 0,
    "shell.commands": {"sh": {"program": "/bin/sh", "arguments": ["-c", "(?s).*"]}},
    "search.providers": {"main": "http://127.0.0.1:1/search"},
    "mail.server": "smtp://127.0.0.1:25",
    "mail.sender": "me@example.com",
    "llm.endpoints": {"main": {"url": "http://127.0.0.1:1/v1", "model": "m"}},
    "browser.enabled": True,
}
USUAL: dict[str, tuple[float, float | None]] = {
    "http.get": (35, 120),
    "search.web": (11, 45),
    "shell.run": (180, 600),
    "browser.read": (30, 90),
    "mail.send": (20, 120),
    "llm.chat": (120, 600),
    "file.read": (30, None),
}
"""Seconds of an attempt (http and search with what a connection may take), and of the step with its retries."""


@pytest.mark.req("6.4")
async def test_each_type_has_its_own() -> None:
    async with TestEngine(config=CONFIG) as engine:
        specs = {entry.spec.name: entry.spec for entry in engine.desk.tools}
    for name, (attempt_s, step_s) in USUAL.items():
        spec = specs[name]
        step = None if spec.step_timeout_ms is None else spec.step_timeout_ms / 1000
        assert ((spec.timeout_ms or 0) / 1000, step) == (attempt_s, step_s), name


@pytest.mark.req("6.4", "N.2")
async def test_a_step_may_say_otherwise_and_the_whole_tree_is_gone(tmp_path: Path) -> None:
    script = "trap '' TERM; setsid sleep 613 & sleep 613"
    plan = Plan("tarpit")
    plan.step("a", "shell.run", {"argv": ["sh", "-c", script]}, timeout="2s", retry=0, on_uncertain="fail")
    async with TestEngine(config=CONFIG, workspace=tmp_path) as engine:
        task = await engine.start(plan)
        waiting = asyncio.ensure_future(task.result())
        async with asyncio.timeout(60):
            while not sleepers():  # noqa: ASYNC110 -- a program says nothing when it begins
                await asyncio.sleep(0.01)
            await engine.clock.advance("3s")
            result = await waiting
        (cut,) = [event.data async for event in task.events(follow=False) if event.type == "attempt.timed_out"]
    error: Any = cut["error"]
    assert (result.status, error["code"], cut["effect_state"]) == ("failed", "timeout", "unknown")
    assert "2 s" in error["message"]
    assert sleepers() == []


def sleepers() -> list[int]:
    """Of the script above."""
    every = psutil.Process().children(recursive=True)
    return [one.pid for one in every if "613" in words(one)]


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.req("6.4")
@pytest.mark.parametrize("said", ["0s", "-1s", "400d", "soon"])
def test_no_step_may_say_for_ever_or_never(said: str) -> None:
    with pytest.raises(PlanError):
        Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "text.join", "timeout": said}]}).check()
