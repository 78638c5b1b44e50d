"""What an engine holds does not grow with what it has done."""

import json
import subprocess
import sys

import pytest

TASKS = 140


@pytest.mark.req("TP.2")
def test_nothing_grows_with_the_number_of_tasks() -> None:
    """In a process of its own, through a full disk; `make torture` does it with 10,000 tasks, for ten minutes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fault.soak", "--tasks", str(TASKS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["tasks"] == TASKS
    assert found["ends"]["completed"] >= 0.9 * TASKS
    assert found["grouped"] > 0
    assert found["blocks_grew"] < 0.1
    assert found["rss_mb_grew"] < 0.1
