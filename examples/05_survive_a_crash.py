"""The process dies in the middle. What happens when the same program is started again?"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from everstep import Plan, run, tool

LOG = Path("calls.log")


@tool.pure("work.step")
def work(number: int) -> int:
    """One piece of work; the second piece takes the whole process with it, the first time."""
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"{number}\n")
    if number == 2 and LOG.read_text(encoding="utf-8").split().count("2") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 10


plan = Plan("pieces")
pieces = [plan.step(f"piece_{n}", work, {"number": n}) for n in (1, 2, 3)]
plan.output(pieces=pieces)

if "--carry-it-out" in sys.argv:
    print(run(plan).outputs)
else:
    same = [sys.executable, __file__, "--carry-it-out"]
    killed = subprocess.run(same, capture_output=True, text=True, check=False)
    again = subprocess.run(same, capture_output=True, text=True, check=True)
    print(killed.returncode, again.stdout)

    assert killed.returncode == -signal.SIGKILL
    assert again.stdout == "{'pieces': [10, 20, 30]}\n"
    assert LOG.read_text(encoding="utf-8").split() == ["1", "2", "2", "3"], "what was recorded is not done again"
