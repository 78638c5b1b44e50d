"""`make torture`: results are written line by line, and what stands there is not done again."""

import json
import sys
from pathlib import Path

import pytest

from everstep.torture.__main__ import main, play
from everstep.torture.results import Results
from everstep.torture.trial import Plot
from everstep.torture.workload import Workload


def test_a_trial_is_written_down_and_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.jsonl"
    monkeypatch.setattr("everstep.torture.results.commit", lambda: "abc1234")
    line = Results.of_this_commit(file).once("F1b", 1, lambda: play(Workload(steps=1), Plot()))
    assert (line["verdict"], line["kills"], line["unfired"]) == ("passed", 0, 0)
    with file.open("a") as lines:
        lines.write('{"fault": "F1b", "cut')  # by a kill
    again = Results.of_this_commit(file)
    assert again.once("F1b", 1, lambda: pytest.fail("it stands there")) == json.loads(json.dumps(line))
    monkeypatch.setattr("everstep.torture.results.commit", lambda: "abc1234-dirty")
    assert Results.of_this_commit(file).done == {}


def test_a_point_that_never_fires_fails_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    never = {"some.where.before": (Workload(steps=1), Plot(failpoints=("some.where.before=sigkill",)))}
    monkeypatch.setattr("everstep.torture.__main__.strikes", lambda _seed: never)
    results = str(tmp_path / "results.jsonl")
    monkeypatch.setattr(sys, "argv", ["torture", "--kills", "0", "--points", "1", "--results", results])
    assert main() == 1
    assert "0 kills, 1 bad trials" in capsys.readouterr().out
