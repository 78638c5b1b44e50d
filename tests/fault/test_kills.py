"""What if it dies here? Real processes, SIGKILL of the process group, at random moments and at every failpoint."""

import re
from pathlib import Path

import pytest

from everstep.ports.fault import POINTS
from everstep.torture.trial import Plot, Report, random_plot, trial
from everstep.torture.workload import Workload
from tests.fault.mutants import SOURCE

KILLS = 25
"""Of each of the trials below; four of them make a hundred."""

IN_A_CALL = "call.execute.after=sigkill"
ALL_ONCE = Workload(steps=4, once_share=1.0)
FIRST_LIFE = (
    "migrate.apply.before", "migrate.apply.mid", "migrate.apply.after", "gate.scan.before", "gate.scan.after",
    "create.commit.before", "create.commit.after", "claim.commit.before", "claim.commit.after",
    "intent.commit.before", "intent.commit.after", "call.execute.before", "call.execute.after",
    "outcome.commit.before", "outcome.commit.after", "stop.release.before",
)  # fmt: skip
AFTER_A_CRASH = (
    "scan.page.before", "scan.page.after", "sweep.commit.before", "sweep.commit.after", "recover.probe.before",
    "command.decide.after", "command.commit.before", "command.commit.after",
)  # fmt: skip
IN_A_LONG_CALL = ("renew.commit.before", "renew.commit.after")
ELSEWHERE = {
    "artifact.write.before", "artifact.write.mid", "artifact.write.after", "backup.copy.before", "backup.copy.after",
    "checkpoint.truncate.before", "checkpoint.truncate.after",
}  # fmt: skip
"""Struck by the store's own suite: no task of ours comes there."""


def assert_nothing_is_lost_or_doubled(report: Report) -> None:
    assert report.violations == []
    assert {**report.ledger.as_json(), "asked": 0} == {"lost": (), "doubled": (), "dark": (), "asked": 0}


@pytest.mark.req("WF-2", "WF-7")
@pytest.mark.parametrize("family", range(4))
def test_killed_at_random(tmp_path: Path, family: int) -> None:
    clean_folder = tmp_path / "clean"
    clean_folder.mkdir()
    clean = trial(clean_folder, Workload(seed=family), Plot())
    assert_nothing_is_lost_or_doubled(clean)
    kills = 0
    for seed in range(1000 * family, 1000 * family + KILLS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        workload = Workload(seed=seed, pauses=5 if family == 3 else 0)
        report = trial(folder, workload, random_plot(clean, seed, min(10, KILLS - kills)))
        assert_nothing_is_lost_or_doubled(report)
        kills += report.kills
        if kills == KILLS:
            break
    assert kills == KILLS


@pytest.mark.parametrize("point", FIRST_LIFE)
def test_killed_at(tmp_path: Path, point: str) -> None:
    report = trial(tmp_path, Workload(steps=4), Plot(failpoints=(f"{point}=sigkill",)))
    assert_nothing_is_lost_or_doubled(report)
    assert report.kills == 1, f"{point} never fired"


@pytest.mark.parametrize("point", AFTER_A_CRASH)
def test_killed_after_a_crash_at(tmp_path: Path, point: str) -> None:
    report = trial(tmp_path, ALL_ONCE, Plot(failpoints=(IN_A_CALL, f"{point}=sigkill")))
    assert_nothing_is_lost_or_doubled(report)
    assert report.kills == 2, f"{point} never fired"


@pytest.mark.parametrize("point", IN_A_LONG_CALL)
def test_killed_in_a_long_call_at(tmp_path: Path, point: str) -> None:
    report = trial(tmp_path, Workload(steps=2, call_s=0.5), Plot(failpoints=(f"{point}=sigkill",)))
    assert_nothing_is_lost_or_doubled(report)
    assert report.kills == 1, f"{point} never fired"


def test_killed_again_and_again_inside_recovery(tmp_path: Path) -> None:
    points = ("sweep.commit.before", "sweep.commit.after", "recover.probe.before", "scan.page.after")
    plot = Plot(failpoints=(IN_A_CALL, *(f"{point}=sigkill" for point in points)))
    report = trial(tmp_path, ALL_ONCE, plot)
    assert_nothing_is_lost_or_doubled(report)
    assert report.kills == 5


def test_no_point_is_forgotten() -> None:
    """A new point has to be struck somewhere, or to say where it is."""
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if "crash.py" not in path.name)
    named = set(re.findall(r"\bfault\(\"([a-z_.]+)\"\)", text)) | POINTS
    struck = {*FIRST_LIFE, *AFTER_A_CRASH, *IN_A_LONG_CALL} | ELSEWHERE
    assert named - {"intent.commit.before"} - struck == set()
    assert struck - named == set()
