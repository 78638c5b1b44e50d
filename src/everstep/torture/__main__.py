"""`make torture`: many kills, every failpoint several times, one line of results per trial.

Each trial appends to `torture-results.jsonl` (`results`). Exit 0 only without a violation, a lost, doubled or dark
effect, and with every point struck.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from everstep.torture.points import strikes
from everstep.torture.results import FILE, Line, Results, verdict
from everstep.torture.trial import Plot, Report, random_plot, trial
from everstep.torture.workload import Workload

KILLS_PER_TRIAL: Final = 10
RESTS_S: Final = (10, 40)
"""All others are started again at once."""


def play(workload: Workload, plot: Plot) -> Line:
    """One trial, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="everstep-torture-") as folder:
        report = trial(Path(folder), workload, plot)
    line = told(report)
    line["unfired"] = len(plot.failpoints) - report.kills if plot.failpoints else 0
    return line


def told(report: Report) -> Line:
    """A report as one line of results."""
    ledger = report.ledger.as_json()
    return {
        "verdict": verdict(report.violations, ledger["lost"], ledger["doubled"], ledger["dark"]),
        "kills": report.kills,
        "violations": [violation._asdict() for violation in report.violations],
        **ledger,
        "progress_s": report.progress_s,
    }


def suite(results: Results, kills: int, times: int, seed: int) -> Iterator[Line]:
    """Every failpoint so many times, then random kills until there are enough."""
    for number in range(seed, seed + times):
        for point, (workload, plot) in strikes(number).items():
            yield results.once(f"F1a {point}", number, partial(play, workload, plot))
    with tempfile.TemporaryDirectory(prefix="everstep-torture-") as folder:
        clean = trial(Path(folder), Workload(), Plot())
    number, made = seed, 0
    for rest in RESTS_S if kills > KILLS_PER_TRIAL else ():
        plot = replace(random_plot(clean, seed, 1), rest_s=rest)
        line = results.once(f"F1b after {rest} s", seed, partial(play, Workload(steps=20, seed=seed), plot))
        made += line["kills"]
        yield line
    while made < kills:
        workload = Workload(steps=20, seed=number, pauses=number % 2 * 5)
        plot = random_plot(clean, number, min(KILLS_PER_TRIAL, kills - made))
        line = results.once("F1b", number, partial(play, workload, plot))
        number, made = number + 1, made + line["kills"]
        yield line


def main() -> int:
    parser = argparse.ArgumentParser(prog="everstep.torture", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=500, help="random kills")
    parser.add_argument("--points", type=int, default=5, help="how often each failpoint is struck")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=FILE)
    given = parser.parse_args()
    results = Results.of_this_commit(given.results)
    kills = asked = wrong = 0
    progress: list[float] = []
    for line in suite(results, given.kills, given.points, given.seed):
        kills, asked = kills + line["kills"], asked + line["asked"]
        progress += line["progress_s"][1:]
        bad = line["verdict"] != "passed" or line["unfired"]
        wrong += bool(bad)
        print(f"{line['fault']} seed {line['seed']}: {line['verdict']}, {line['kills']} kills, {line['asked']} asked")
        for violation in line["violations"]:
            print(f"  {violation['check']} {violation['task']} {violation['seq']}: {violation['what']}")
    middle = sorted(progress)[len(progress) // 2] if progress else 0.0
    print(f"{kills} kills, {wrong} bad trials, {asked} questions, start to first call {middle:.2f} s (median)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
