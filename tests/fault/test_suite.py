"""`make torture`: results are written line by line, and what stands there is not done again."""

import json
import sys
from pathlib import Path

import pytest

from everstep.torture.__main__ import Suite, main
from everstep.torture.trial import Plot
from everstep.torture.workload import Workload


def test_a_trial_is_written_down_and_not_repeated(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    suite = Suite(results, "abc1234")
    line = suite.play("F1b", 1, Workload(steps=1), Plot())
    assert (line["verdict"], line["kills"], line["unfired"]) == ("passed", 0, 0)
    assert json.loads(results.read_text()) == json.loads(json.dumps(line))
    again = Suite(results, "abc1234")
    again.read()
    assert again.play("F1b", 1, Workload(steps=1), Plot(failpoints=("never=sigkill",))) == json.loads(json.dumps(line))
    other = Suite(results, "abc1234-dirty")
    other.read()
    assert other.done == {}


def test_a_point_that_never_fires_fails_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    never = {"some.where.before": (Workload(steps=1), Plot(failpoints=("some.where.before=sigkill",)))}
    monkeypatch.setattr("everstep.torture.__main__.strikes", lambda _seed: never)
    results = str(tmp_path / "results.jsonl")
    monkeypatch.setattr(sys, "argv", ["torture", "--kills", "0", "--points", "1", "--results", results])
    assert main() == 1
    assert "0 kills, 1 bad trials" in capsys.readouterr().out
