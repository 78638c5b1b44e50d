"""Engines that are broken on purpose: if the checker passes one of them, the checker is what is broken.

    python -m tests.fault.mutants                 all of them, one line each
    python -m tests.fault.mutants "no epoch"      those whose name has these words

A mutant is text in a file of the product and what stands there instead. It is applied to a copy; text that is no
longer there is a failure, so the list follows the code.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from everstep.torture.results import Line, Results, verdict
from everstep.torture.trial import ForeignSubject, Plot, trial
from everstep.torture.workload import Workload

SOURCE = Path(__file__).parents[2] / "src"
LEASE_LOSS = (str(Path(__file__).with_name("lease_loss.py")),)
RETOLD = Path(__file__).with_name("retold.py")
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Edit:
    """One text of one file, and what stands there instead."""

    file: str
    old: str
    new: str

    def apply(self, source: Path) -> None:
        path = source / "everstep" / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} times: {self.old}"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


class Detector(Protocol):
    """Something in which a broken engine shows."""

    def found(self, folder: Path, source: Path) -> set[str]:
        """What is wrong with this source, in the words of whoever looked; nothing with a sound one."""


@dataclass(frozen=True)
class Scene:
    """A small trial of real processes, judged by the checker and the ledger."""

    workload: Workload = Workload(steps=6)
    failpoints: tuple[str, ...] = ()
    program: tuple[str, ...] = ("-m", "everstep.torture.child")
    fires: bool = True
    """Its failpoints kill; else they only raise."""

    def found(self, folder: Path, source: Path = SOURCE) -> set[str]:
        plot = Plot(failpoints=self.failpoints, patience_s=PATIENCE_S)
        report = trial(folder, self.workload, plot, ForeignSubject(source, self.program))
        wrong = {violation.check for violation in report.violations}
        wrong |= {name for name in ("lost", "doubled", "dark") if report.ledger.as_json()[name]}
        if self.fires and not wrong and report.kills != len(self.failpoints):
            wrong.add("a failpoint never fired")
        return wrong


@dataclass(frozen=True)
class Retold:
    """Stories of the store suite, on a file."""

    stories: tuple[str, ...]

    def found(self, folder: Path, source: Path = SOURCE) -> set[str]:
        said = subprocess.run(
            [sys.executable, str(RETOLD), *self.stories],
            env={**os.environ, "PYTHONPATH": str(source), "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if said.returncode == 0:
            return set()
        return {said.stdout.partition(":")[0] or f"it does not even begin: {said.stderr[-300:]}"}


@dataclass(frozen=True)
class PowerLoss:
    """States that a disk can be left in."""

    def found(self, folder: Path, source: Path = SOURCE) -> set[str]:
        said = subprocess.run(
            [sys.executable, "-m", "tests.fault.power", "--states", "60"],
            cwd=SOURCE.parent,
            env={**os.environ, "PYTHONPATH": str(source), "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return {word.split(": ")[1] for word in json.loads(said.stdout)["violations"]}


@dataclass(frozen=True)
class Mutant:
    """What is broken, how, where it shows, and which check must say so."""

    name: str
    edits: tuple[Edit, ...]
    scene: Detector
    check: str

    def make(self, folder: Path) -> Path:
        """The broken copy."""
        source = folder / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "static"))
        for edit in self.edits:
            edit.apply(source)
        return source

    def caught(self, folder: Path) -> set[str]:
        """What is found of it; it is caught if its check is among that."""
        stage = folder / "trial"
        stage.mkdir()
        return self.scene.found(stage, self.make(folder))


CLEAN = Scene()
PAUSES = Scene(Workload(steps=12, pauses=6, call_s=0.02))
IN_A_CALL = Scene(Workload(steps=4, once_share=0.0), failpoints=("call.execute.after:2=sigkill",))
IN_A_CALL_MADE_ONCE = Scene(Workload(steps=4, once_share=1.0), failpoints=("call.execute.after:2=sigkill",))
LEASE_LOST = Scene(Workload(steps=4, once_share=0.0, call_s=0.05, pauses=2), program=LEASE_LOSS)
APPROVALS = Scene(Workload(steps=4, once_share=0.5, approvals=0.5))
APPROVALS_KILLED = Scene(
    Workload(steps=3, once_share=0.0, approvals=1.0),
    failpoints=("call.execute.after=sigkill", "command.commit.after=sigkill"),
)
ORDERED_AGAIN = Scene(Workload(steps=2, once_share=1.0, approvals=0.5, fails=True))
SILENCE = Scene(Workload(steps=3, once_share=0.0, approvals=1.0, silent=True))
NOT_YET_CALLED = Scene(Workload(steps=3, once_share=0.0), failpoints=("call.execute.before:3=sigkill",))
JUST_CREATED = Scene(Workload(steps=2), failpoints=("create.commit.after=sigkill",))
FULL_FOR_A_MOMENT = Scene(Workload(steps=4), failpoints=("outcome.commit.before:2=raise(store_full)",), fires=False)
SCENES: dict[str, Detector] = {
    "approvals": APPROVALS,
    "killed around approvals": APPROVALS_KILLED,
    "ordered again after an approval": ORDERED_AGAIN,
    "approved by silence": SILENCE,
    "clean": CLEAN,
    "pauses": PAUSES,
    "killed in a call": IN_A_CALL,
    "killed in a `once` call": IN_A_CALL_MADE_ONCE,
    "lease lost in a call": LEASE_LOST,
    "killed before a call": NOT_YET_CALLED,
    "killed after creation": JUST_CREATED,
    "the disk is full for a moment": FULL_FOR_A_MOMENT,
}


def play(mutant: Mutant) -> Line:
    """Whether it is caught, and by what."""
    with tempfile.TemporaryDirectory(prefix="everstep-mutant-") as folder:
        found = mutant.caught(Path(folder))
    return {"verdict": verdict(mutant.check not in found), "mutant": mutant.name, "found": sorted(found)}


def main(words: list[str]) -> int:
    """The gate: 0 only if every one of them is caught."""
    from tests.fault.broken_engines import BROKEN_ENGINES
    from tests.fault.broken_stores import BROKEN_STORES

    every = (*BROKEN_ENGINES, *BROKEN_STORES)
    wanted = [mutant for mutant in every if all(word in mutant.name for word in words)]
    results, survived = Results.of_this_commit(), 0
    for number, mutant in enumerate(wanted):
        line = results.once(f"mutant {mutant.name}", 0, partial(play, mutant))
        survived += line["verdict"] != "passed"
        print(f"{number + 1} {line['verdict']}  {mutant.name}: {', '.join(line['found']) or 'nothing'}", flush=True)
    print(f"{len(wanted) - survived} of {len(wanted)} mutants caught")
    return 1 if survived or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
