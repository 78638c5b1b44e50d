"""Many who watch fifty tasks, some of whom never read, or a byte a second: what `bench.streams` measures, as a trial.

python -m tests.fault.crowds                  100 of 500 who do not read, then 1,000 who do; into the results
python -m tests.fault.crowds F61              one of them
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.streams import measure, missed
from everstep.torture.results import Line, Results, verdict

SIZES: Final = {"F60": (500, 100, 60.0), "F61": (1_000, 0, 120.0)}
"""Clients, how many of them do not read, and for how many seconds."""


def play(clients: int, slow: int, seconds: float, settings: str = "") -> Line:
    """One crowd; what misses a target of the benchmark is wrong."""
    with TemporaryDirectory(prefix="es-") as folder:
        Path(folder, "everstep.toml").write_text(settings, encoding="utf-8")
        found = asyncio.run(measure(clients, slow, seconds, Path(folder)))
    wrong = missed(found)
    seen = Counter(slow_closed=found["slow_closed_1013"], events=found["events"])
    return {"verdict": verdict(wrong), "trials": clients, "violations": wrong, "seen": seen, "figures": found}


def main() -> int:
    """Those that are named, or both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", choices=[*SIZES, []])
    given = parser.parse_args()
    results, said, bad = Results.of_this_commit(), {}, 0
    for name in given.names or SIZES:
        line = results.once(name, 0, partial(play, *SIZES[name]))
        bad += line["verdict"] != "passed"
        figures = ("events", "p95_ms", "p99_ms", "lost", "doubled", "grown_mb", "slow_closed_1013")
        said[name] = {"verdict": line["verdict"], **{one: line["figures"][one] for one in figures}}
        print(name, line["violations"], line["figures"], flush=True)
    print(json.dumps(said))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
