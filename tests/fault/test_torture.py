"""`make torture` as a whole: nothing that fails in it is passed over, and what passed is not repeated."""

import re
import sys
from pathlib import Path

import psutil
import pytest

from everstep.torture.results import Results
from tests.fault import torture
from tests.fault.torture import BESIDE, Part, Run, command_of, parts

ROOT = Path(__file__).parents[2]


class Script(Part):
    """A part that is a line of Python."""

    @property
    def words(self) -> list[str]:
        return [sys.executable, "-c", self.command]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(torture, "LOGS", tmp_path / "logs")
    return Run(Results(tmp_path / "results.jsonl", "this"))


def test_a_part_that_fails_or_hangs_is_told_and_the_others_go_on(run: Run) -> None:
    good, bad = Script("good", "print('42 kills')", 1), Script("bad", "print('C4 7'); raise SystemExit(3)", 1)
    hangs = Script("hangs", "import time; time.sleep(600)", 0.01)
    lines = run.all([good, bad, hangs, Script("alone", "", 1, "alone"), Script("beside", "", 1, "beside")])
    assert {line["fault"]: line["verdict"] for line in lines} == {
        "part alone": "passed", "part good": "passed", "part bad": "failed", "part hangs": "failed",
        "part beside": "passed",
    }  # fmt: skip
    said = {line["fault"]: line["said"] for line in lines}
    assert (said["part good"], said["part bad"]) == ("42 kills", "C4 7")
    assert said["part hangs"].startswith("cut off after")


def test_what_a_part_that_is_cut_off_has_started_ends_with_it(run: Run, tmp_path: Path) -> None:
    other = f"import subprocess, time; one = subprocess.Popen(['sleep', '600'], start_new_session=True); \
open({str(tmp_path / 'pid')!r}, 'w').write(str(one.pid)); time.sleep(600)"
    run.all([Script("hangs", other, 0.05)])
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_what_passed_is_not_repeated_and_what_failed_is(run: Run, tmp_path: Path) -> None:
    count = (
        f"open({str(tmp_path / 'times')!r}, 'a').write('x'); import os; os._exit(not os.path.exists('{tmp_path}/ok'))"
    )
    assert run.all([Script("once", count, 1)])[0]["verdict"] == "failed"
    (tmp_path / "ok").touch()
    for _ in range(2):
        assert run.all([Script("once", count, 1)])[0]["verdict"] == "passed"
    assert (tmp_path / "times").read_text() == "xx"


@pytest.mark.parametrize("release", [False, True])
def test_every_part_is_there(release: bool) -> None:
    for part in parts(release=release):
        module = part.command.split()[0]
        places = [
            base / f"{module.replace('.', '/')}{end}"
            for base in (ROOT, ROOT / "src")
            for end in (".py", "/__main__.py")
        ]
        assert module == "pytest" or any(place.is_file() for place in places), part
        for test in re.findall(r"tests/\S+", part.command):
            assert (ROOT / test).exists(), part
        assert command_of(part)


def test_it_fits_into_an_hour() -> None:
    """Even if every part took all of its time but for the two longest kinds, which go on where they were cut off."""
    every = parts(release=False)
    assert sum(part.minutes for part in every if part.lane == "alone") <= 30
    assert max(part.minutes for part in every) <= 40
    assert sum(part.minutes for part in every if part.lane == "beside") <= 60 * BESIDE
