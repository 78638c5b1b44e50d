"""Tests of faults that come in a moment, each many times: once is luck.

    python -m tests.fault.again                   every fault of proof.toml that says how often, into the results
    python -m tests.fault.again F40 F45           these

The tests are those that `proof.toml` names; `--times` (tests/conftest.py) repeats each in one process of pytest.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from everstep.torture.results import Line, Results, verdict

ROOT = Path(__file__).parents[2]
SAID_MAX = 2_000
PASSED = re.compile(r"(\d+) passed")


def play(row: dict[str, Any]) -> Line:
    """All tests of a fault, so many times."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--times", str(row["times"])]
    done = subprocess.run(
        [*words, *row.get("again", row["tests"])],
        cwd=ROOT,
        env={**os.environ, **row.get("environ", {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    passed = PASSED.search(done.stdout)
    said = done.stdout[-SAID_MAX:] if done.returncode else ""
    return {"verdict": verdict(done.returncode), "trials": int(passed[1]) if passed else 0, "said": said}


def main(words: Sequence[str]) -> int:
    """All that say how often, or those that are named."""
    rows = tomllib.loads((ROOT / "proof.toml").read_text(encoding="utf-8"))["faults"]
    wanted = {name: row for name, row in rows.items() if "times" in row and (not words or name in words)}
    results, trials, bad = Results.of_this_commit(), 0, list[str]()
    for name, row in wanted.items():
        line = results.once(f"{name} again", 0, partial(play, row))
        trials += line["trials"]
        print(f"{name}: {line['verdict']}, {line['trials']} trials, {line['seconds']} s\n{line['said']}", flush=True)
        if line["verdict"] != "passed":
            bad.append(name)
    print(f"{len(wanted)} faults, {trials} trials, bad: {', '.join(bad) or 'none'}")
    return 1 if bad or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
