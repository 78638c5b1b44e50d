"""Never more at the same time than may be: tasks of a worker, calls of a pool; also after kill -9."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fault.crowd_engine import CROWD


def at_once(log: Path) -> int:
    """The most calls that were under way at the same time; those of a process that was killed ended with it."""
    lines = [line.split() for line in log.read_text().splitlines()]
    most, process = 0, ""
    open_calls: set[str] = set()
    for what, n, pid, _ in sorted(lines, key=lambda line: int(line[3])):
        if pid != process:
            process, open_calls = pid, set()
        if what == "begin":
            open_calls.add(n)
        else:
            open_calls.discard(n)
        most = max(most, len(open_calls))
    return most


@pytest.mark.req("7.3", "DoD.5")
@pytest.mark.parametrize(("tasks", "pool"), [(3, 20), (20, 3)], ids=["tasks", "pool"])
def test_never_more_than_three_also_after_a_kill(tmp_path: Path, tasks: int, pool: int) -> None:
    log = tmp_path / "log"
    log.touch()
    command = [sys.executable, "-m", "tests.fault.crowd_engine", str(tmp_path / "s.db"), str(log), str(tasks)]
    first = subprocess.Popen([*command, str(pool)])
    until = time.monotonic() + 120
    while log.read_text().count("end") < 6:
        assert first.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    killed_at = log.read_text().count("end")
    second = subprocess.run([*command, str(pool)], capture_output=True, timeout=120, check=False)
    assert second.stdout == b"done", second.stderr
    assert at_once(log) == 3
    ended = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("end")]
    assert {*ended} == {str(n) for n in range(CROWD)}
    assert killed_at < CROWD
