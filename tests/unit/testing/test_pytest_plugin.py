"""What users' tests get from the plugin: an engine, its clock, and a timeline where they fail."""

import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import asyncio
from everstep import Plan
from everstep.testing import fake

WAIT = {"id": "w", "tool": "wait", "with": {"for": "1h"}}
PLAN = Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "x.y"}, WAIT]})

def test_time(everstep_engine, everstep_clock):
    async def story():
        async with everstep_engine(tools={"x.y": fake(returns=1)}) as t:
            task = await t.start(PLAN)
            await everstep_clock.advance("2h")
            assert (await task.result()).status == "completed"
            assert wanted
    wanted = True
    asyncio.run(story())

def test_red(everstep_engine):
    async def story():
        async with everstep_engine(tools={"x.y": fake(returns=1)}) as t:
            task = await t.start(PLAN)
            await t.clock.advance("1s")
            assert task.status == "completed"
    asyncio.run(story())
"""


def verdict_on(folder: Path, *words: str) -> str:
    """What pytest says of a user's tests."""
    command = [sys.executable, "-m", "pytest", "-q", *words, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_fixtures_and_the_timeline_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_plan.py").write_text(TESTS, encoding="utf-8")
    said = verdict_on(tmp_path, "-p", "no:randomly")
    assert "1 failed, 1 passed" in said, said
    assert "everstep tasks" in said
    assert "attempt.started        a" in said
    assert "step.waiting           w" in said


def test_the_page_of_the_guide_is_carried_out_as_written(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/guide/testing.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    said = verdict_on(tmp_path, "-o", "asyncio_mode=auto")
    assert "2 passed" in said, said
