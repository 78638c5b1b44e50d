"""What users' tests get from the plugin: an engine, its clock, and a timeline where they fail."""

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


def test_fixtures_and_the_timeline_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_plan.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "everstep tasks" in done.stdout
    assert "attempt.started        a" in done.stdout
    assert "step.waiting           w" in done.stdout
