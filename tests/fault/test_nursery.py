"""Processes that are forked instead of started: to everybody else there is no difference."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everstep.torture.nursery import Forked, nursery

PROGRAM = """
import os, pathlib, signal, sys
print(os.getcwd(), sys.argv[1:], sys.path[0], os.environ.get("WORD"), sys.stdin.read(), flush=True)
print("wrong", file=sys.stderr)
if sys.argv[1] == "wait":
    signal.pause()
sys.exit(7)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "in").write_text("given", encoding="utf-8")
    return tmp_path


def start(place: Path, word: str) -> Forked:
    with (place / "in").open() as given, (place / "out").open("w") as out, (place / "err").open("w") as err:
        streams = [one.fileno() for one in (given, out, err)]
        return nursery().start("program", [word], cwd=place, env={"WORD": "said"}, streams=streams)


def test_it_has_its_own_words_place_environment_and_streams(place: Path) -> None:
    process = start(place, "end")
    assert process.wait(60) == 7
    assert (process.poll(), process.returncode) == (7, 7)
    plain = subprocess.run(
        [sys.executable, "-m", "program", "end"],
        cwd=place,
        env={"WORD": "said"},
        input="given",
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 7
    assert (place / "out").read_text() == plain.stdout
    assert (place / "err").read_text() == plain.stderr


def test_it_can_be_killed_with_all_its_group(place: Path) -> None:
    process = start(place, "wait")
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert os.getpgid(process.pid) == process.pid, "a session of its own"
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    process.send_signal(signal.SIGTERM)  # nobody is there any more, and nobody is hit


def test_who_looks_late_still_knows_both_numbers() -> None:
    told, tells = os.pipe()
    os.write(tells, b"%12d" % 1234)
    os.write(tells, b"%12d" % -9)
    os.close(tells)
    process = Forked(told)
    assert (process.pid, process.wait(0)) == (1234, -9)


def test_several_live_at_the_same_time(place: Path) -> None:
    first, second = start(place, "wait"), start(place, "end")
    assert second.wait(60) == 7
    assert first.poll() is None
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == -signal.SIGTERM
