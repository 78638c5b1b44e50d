"""`make torture`: many kills, every failpoint several times, one line of results per trial.

Each trial appends to `torture-results.jsonl`; a suite that was interrupted goes on where it stopped, since a trial that
stands there for this commit is not repeated. Exit 0 only without a violation, a lost, doubled or dark effect, and
with every point struck.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from everstep.torture.points import strikes
from everstep.torture.trial import Plot, Report, random_plot, trial
from everstep.torture.workload import Workload

KILLS_PER_TRIAL: Final = 10


@dataclass(slots=True)
class Suite:
    """What was done, by (fault, seed), and where it is written down."""

    results: Path
    commit: str
    done: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def read(self) -> None:
        """Take over what stands there for this commit; a tree with changes is no commit."""
        if self.results.exists() and not self.commit.endswith(("dirty", "unknown")):
            lines = self.results.read_text(encoding="utf-8").splitlines()
            for line in map(json.loads, lines):
                if line["commit"] == self.commit:
                    self.done[line["fault"], line["seed"]] = line

    def play(self, fault: str, seed: int, workload: Workload, plot: Plot) -> dict[str, Any]:
        """One trial, unless it was done already."""
        if (fault, seed) not in self.done:
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="everstep-torture-") as folder:
                report = trial(Path(folder), workload, plot)
            line = {"suite": "torture", "fault": fault, "seed": seed, "commit": self.commit, **told(report)}
            line["unfired"] = len(plot.failpoints) - report.kills if plot.failpoints else 0
            line["seconds"] = round(time.monotonic() - began, 3)
            with self.results.open("a", encoding="utf-8") as results:
                results.write(json.dumps(line) + "\n")
            self.done[fault, seed] = line
        return self.done[fault, seed]


def told(report: Report) -> dict[str, Any]:
    """A report as one line of results."""
    ledger = report.ledger.as_json()
    bad = report.violations or ledger["lost"] or ledger["doubled"] or ledger["dark"]
    return {
        "verdict": "failed" if bad else "passed",
        "kills": report.kills,
        "violations": [violation._asdict() for violation in report.violations],
        **ledger,
        "progress_s": report.progress_s,
    }


def suite(results: Suite, kills: int, times: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every failpoint so many times, then random kills until there are enough."""
    for number in range(seed, seed + times):
        for point, (workload, plot) in strikes(number).items():
            yield results.play(f"F1a {point}", number, workload, plot)
    with tempfile.TemporaryDirectory(prefix="everstep-torture-") as folder:
        clean = trial(Path(folder), Workload(), Plot())
    number, made = seed, 0
    while made < kills:
        workload = Workload(steps=20, seed=number, pauses=number % 2 * 5)
        line = results.play("F1b", number, workload, random_plot(clean, number, min(KILLS_PER_TRIAL, kills - made)))
        number, made = number + 1, made + line["kills"]
        yield line


def main() -> int:
    parser = argparse.ArgumentParser(prog="everstep.torture", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=500, help="random kills")
    parser.add_argument("--points", type=int, default=5, help="how often each failpoint is struck")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("torture-results.jsonl"))
    given = parser.parse_args()
    git = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)  # noqa: S607
    results = Suite(given.results, git.stdout.strip() or "unknown")
    results.read()
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
