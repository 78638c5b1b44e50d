"""What an engine holds does not grow with what it has done."""

import json
import subprocess
import sys


def test_nothing_grows_with_the_number_of_tasks() -> None:
    """In a process of its own; `make torture` goes on for ten minutes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fault.soak", "--rounds", "6"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] == 6
    assert found["ends"]["completed"] >= 100
