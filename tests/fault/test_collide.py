"""Calls that end when their time does, beside a cancel, a pause and a lost lease: one end, whatever comes first."""

import pytest

from tests.fault.collide import ENDS, collide, options_of, play, script_of
from tests.fault.simulate import simulate

TOGETHER = 50


@pytest.mark.req("C.2")
def test_f44_a_task_ends_once_whatever_comes_first() -> None:
    """And everything did come first, some time."""
    line = play(1, TOGETHER)
    assert line["violations"] == []
    for name in (*ENDS, "attempt.timed_out", "attempt.abandoned", "step.completed", "late_write"):
        assert line["seen"][name] > 0, name


@pytest.mark.parametrize("seed", [279, 424, 600, 992])
def test_finally_does_not_begin_while_the_task_is_paused(seed: int) -> None:
    """These found it: the engine died while a task that had failed was being paused, and the next one went on."""
    assert collide(seed).wrong == []


def test_a_second_end_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted apart from the checker: here a created task passes for one that has ended too."""
    monkeypatch.setattr("tests.fault.collide.ENDS", (*ENDS, "task.created"))
    assert any("have" in what and "ends" in what for what in collide(3).wrong)


def test_a_collision_can_be_told_again() -> None:
    assert simulate(7, script_of(7), options_of(7)) == simulate(7, script_of(7), options_of(7))
