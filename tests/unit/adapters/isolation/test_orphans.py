"""An engine that is killed takes the processes of its calls with it, detached ones too."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROGRAM = """
import asyncio, sys
from everstep import Engine, Plan
plan = Plan("running")
plan.step("run", "shell.run", {"argv": ["sh", "-c", "trap '' TERM; setsid sleep 61 & echo > begun; sleep 61"]})
config = {"store": "s.db", "containment.uid_base": 0,
          "shell.commands": {"sh": {"program": "/bin/sh", "arguments": ["-c", "(?s).*"]}}}
async def main():
    async with Engine(config=config) as engine:
        await engine.run(plan)
asyncio.run(main())
"""


@pytest.mark.req("W.5")
def test_nothing_outlives_a_killed_engine(tmp_path: Path) -> None:
    engine = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=tmp_path, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < until
        assert engine.poll() is None, engine.stderr.read() if engine.stderr else ""
        time.sleep(0.02)
    started = psutil.Process(engine.pid).children(recursive=True)
    assert started
    os.kill(engine.pid, signal.SIGKILL)
    engine.communicate()
    _, alive = psutil.wait_procs(started, timeout=30)
    assert alive == []
