"""What following shows where nothing can be drawn."""

import json

import pytest

from everstep.doors.cli.progress import LiveScreen
from everstep.doors.cli.screens import STILL_RUNNING_S, JsonScreen, PlainScreen
from everstep.doors.cli.session import Session
from everstep.doors.cli.view import TaskView
from tests.unit.doors.cli.stories import Story, task


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_for_logs(capsys: pytest.CaptureFixture[str]) -> None:
    clock, story = Clock(), Story()
    screen, view = PlainScreen(Session(), clock), TaskView.of(task())
    screen.begin(view, taken_up=True)
    frame = story.attempt("hits")
    view.absorb(frame)
    screen.frame(frame)
    screen.paint()
    clock.now += STILL_RUNNING_S
    screen.paint()
    screen.paint()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Research brief   t_7k2m9qx4"
    assert lines[2] == "2026-11-15T18:02:02Z t_7k2m9qx4 attempt.started hits search.local attempt 1"
    assert lines[3].endswith("t_7k2m9qx4 still running hits 0 of 3 steps ended")
    assert len(lines) == 4


def test_quiet_shows_only_what_needs_someone(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    screen, view = PlainScreen(Session(quiet=True)), TaskView.of(task())
    screen.begin(view, taken_up=False)
    for frame in (story.attempt("hits"), story.paused()):
        screen.frame(frame)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "pause.opened send" in lines[0]


def test_frames_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    screen, story = JsonScreen(Session(json=True)), Story()
    frame = story.attempt("hits")
    for one in ({"type": "hello"}, frame, {"type": "heartbeat"}, {"type": "tick", "seq": 2}):
        screen.frame(one)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [frame, {"type": "tick", "seq": 2}]


@pytest.mark.parametrize("bell", [True, False])
def test_a_terminal_rings_when_somebody_is_needed_unless_told_not_to(
    bell: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, view, story = LiveScreen(Session(bell=bell, quiet=True)), TaskView.of(task()), Story()
    screen.begin(view, taken_up=False)
    for frame in (story.attempt("hits"), story.paused()):
        assert "\a" not in capsys.readouterr().err
        view.absorb(frame)
        screen.frame(frame)
    assert ("\a" in capsys.readouterr().err) is bell
    screen.close()
