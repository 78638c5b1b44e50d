"""What if it dies here? Real processes, SIGKILL of the process group, at random moments and at every failpoint."""

import os
import re
from pathlib import Path

import pytest

from everstep.ports.fault import POINTS
from everstep.torture.points import BY_ERRANDS, BY_THE_STORE, BY_THE_STORY, strikes
from everstep.torture.trial import Plot, Report, random_plot, trial
from everstep.torture.workload import Workload
from tests.fault.mutants import SOURCE

KILLS = int(os.environ.get("EVERSTEP_TEST_KILLS", "13"))
"""Of each of the trials below; `make torture` makes a hundred of the four."""

STRIKES = strikes()


def assert_nothing_is_lost_or_doubled(report: Report) -> None:
    assert report.violations == []
    assert {**report.ledger.as_json(), "asked": 0} == {"lost": (), "doubled": (), "dark": (), "asked": 0}


@pytest.mark.req("C.2", "TR.1", "WF-2")
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
        workload = Workload(seed=seed, pauses=5 if family == 3 else 0, approvals=0.3 if family == 2 else 0.0)
        report = trial(folder, workload, random_plot(clean, seed, min(10, KILLS - kills)))
        assert_nothing_is_lost_or_doubled(report)
        kills += report.kills
        if kills == KILLS:
            break
    assert kills == KILLS


@pytest.mark.req("C.2", "TR.1", "WF-2")
@pytest.mark.parametrize("point", STRIKES)
def test_killed_at(tmp_path: Path, point: str) -> None:
    workload, plot = STRIKES[point]
    report = trial(tmp_path, workload, plot)
    assert_nothing_is_lost_or_doubled(report)
    assert report.kills == len(plot.failpoints), f"{point} never fired"


def test_no_point_is_forgotten() -> None:
    """A new point has to be struck somewhere, or to say where it is."""
    engine = (path for path in SOURCE.rglob("*.py") if path.parent.name not in {"ports", "testing"})
    text = "".join(path.read_text(encoding="utf-8") for path in engine)
    named = set(re.findall(r"\bfault\(\"([a-z_.]+)\"\)", text)) | POINTS
    struck = {point for point in STRIKES if " " not in point}
    assert named == {*struck, *BY_THE_STORE, *BY_THE_STORY, *BY_ERRANDS}
    assert len(named) >= 60
