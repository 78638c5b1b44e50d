"""The harness itself, on a subject that is no engine: it kills, starts again, notices who hangs, and counts."""

import json
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from everstep.torture.checker import check_processes
from everstep.torture.history import Effect, Logs, Violation
from everstep.torture.trial import Account, Moment, Plot, Report, random_plot, trial
from everstep.torture.workload import Workload

NOTHING: dict[str, int] = {}
SOON = Moment("startup", 0.5)
EFFECT = json.dumps(asdict(Effect("t_1", "s0", 1, "key", 1, "one", "start", 0)))


class Puppet:
    """A subject that lives as told: one command per start, `done` when a file is there."""

    def __init__(self, *lives: str) -> None:
        self._lives = iter(lives)
        self.environs: list[Mapping[str, str]] = []
        self.folder = Path()
        self.outputs: object = None
        self.off_by = 0

    def prepare(self, folder: Path, workload: Workload) -> None:
        self.folder = folder
        self.outputs = {"value": workload.value + self.off_by}

    def start(self, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        self.environs.append(environ)
        return subprocess.Popen(["/bin/sh", "-c", next(self._lives)], cwd=self.folder, start_new_session=True)

    def account(self) -> Account | None:
        return Account(self.outputs, NOTHING, NOTHING, NOTHING) if (self.folder / "done").exists() else None

    def judge(self, logs: Logs) -> Iterable[Violation]:
        return ()


def carried(folder: Path, plot: Plot, *lives: str) -> tuple[Report, Puppet]:
    puppet = Puppet(*lives)
    return trial(folder, Workload(steps=0), plot, puppet), puppet


def test_it_kills_and_starts_again_until_the_end(tmp_path: Path) -> None:
    report, puppet = carried(
        tmp_path,
        Plot(moments=(SOON, SOON), startup_s=0.1),
        "sleep 60",
        "sleep 60 & wait",
        "touch done",
    )
    assert [life.end for life in report.lives] == ["killed", "killed", "ended"]
    assert report.kills == 2
    assert report.violations == []
    assert puppet.environs == [{}, {}, {}]


def test_failpoints_are_armed_life_by_life(tmp_path: Path) -> None:
    plot = Plot(failpoints=("a.b.before=sigkill", "c.d.after=exit"))
    report, puppet = carried(tmp_path, plot, "kill -9 $$", "exit 86", "touch done")
    assert [life.end for life in report.lives] == ["killed", "killed", "ended"]
    assert [environ.get("EVERSTEP_FAILPOINTS") for environ in puppet.environs] == [*plot.failpoints, None]


def test_grandchildren_die_with_their_group(tmp_path: Path) -> None:
    report, _ = carried(tmp_path, Plot(), "sleep 60 & echo $! > pid; touch done")
    assert report.violations == []
    orphan = int((tmp_path / "pid").read_text())
    assert not list(check_processes([orphan]))


def test_a_life_that_ends_without_a_result_is_a_violation(tmp_path: Path) -> None:
    report, _ = carried(tmp_path, Plot(), "exit 3")
    assert [violation.check for violation in report.violations] == ["C14"]


def test_a_life_that_hangs_is_a_violation(tmp_path: Path) -> None:
    report, _ = carried(
        tmp_path, Plot(patience_s=0.05), f"trap 'exit 0' {signal.SIGUSR1.value} {signal.SIGUSR2.value}; sleep 60 & wait"
    )
    assert [life.end for life in report.lives] == ["hung"]
    assert [violation.check for violation in report.violations] == ["C14"]


def test_other_outputs_are_a_violation(tmp_path: Path) -> None:
    puppet = Puppet("touch done")
    puppet.off_by = 1
    assert [violation.check for violation in trial(tmp_path, Workload(), Plot(), puppet).violations] == ["C2"]


def test_a_kill_inside_the_work_waits_for_the_first_effect(tmp_path: Path) -> None:
    act = f"echo '{EFFECT}' >> effects.jsonl"
    lives = (f"{act}; sleep 60", f"sleep 0.05; {act}; sleep 60", "touch done")
    plot = Plot(moments=(Moment("work", 0.1), Moment("work", 0.1)), work_s=0.01)
    report, _ = carried(tmp_path, plot, *lives)
    assert [life.end for life in report.lives] == ["killed", "killed", "ended"]
    assert report.lives[1].seconds > 0.05


def test_moments_are_seeded_and_spread() -> None:
    clean = Report(progress_s=[0.3], work_s=0.7)
    plot = random_plot(clean, seed=4, kills=60)
    assert plot == random_plot(clean, seed=4, kills=60)
    assert plot != random_plot(clean, seed=5, kills=60)
    assert (plot.startup_s, plot.work_s) == (0.3, 0.7)
    assert sum(moment.inside == "startup" for moment in plot.moments) == 15
    assert min(moment.share for moment in plot.moments) < 0.1
    assert max(moment.share for moment in plot.moments) > 0.9


def test_the_workload_is_what_it_says() -> None:
    workload = Workload(steps=20, seed=7)
    assert sum(effect == "once" for effect in workload.effects.values()) == 6
    assert len(workload.plan["steps"]) == 20
    assert workload == Workload(steps=20, seed=7)
