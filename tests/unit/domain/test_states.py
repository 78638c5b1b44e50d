"""The tables of legal moves: what the specification lists, and nothing else."""

from itertools import product

import pytest

from everstep.domain.states import (
    ATTEMPT_MOVES,
    ENDED,
    STEP_MOVES,
    TASK_MOVES,
    TERMINAL,
    AttemptStatus,
    StepStatus,
    TaskStatus,
)

TASK = {
    "queued": "running paused cancelling cancelled failed",
    "running": "pausing paused stalled completed failed cancelling",
    "pausing": "paused stalled completed failed cancelling",
    "paused": "queued running cancelling cancelled failed",
    "stalled": "running paused failed cancelling cancelled",
    "cancelling": "cancelled",
    "completed": "",
    "failed": "",
    "cancelled": "",
}


@pytest.mark.parametrize(("before", "after"), list(product(TaskStatus, TaskStatus)))
def test_task_moves_are_those_of_the_specification(before: TaskStatus, after: TaskStatus) -> None:
    assert (after in TASK_MOVES[before]) == (after.value in TASK[before.value].split())


def test_terminal_states_have_no_way_out() -> None:
    assert {"completed", "failed", "cancelled"} == TERMINAL
    assert {"completed", "failed", "skipped"} == ENDED


def test_every_status_has_its_row() -> None:
    assert set(TASK_MOVES) == set(TaskStatus)
    assert set(STEP_MOVES) == set(StepStatus)
    assert set(ATTEMPT_MOVES) == set(AttemptStatus)


def test_an_attempt_ends_once() -> None:
    assert ATTEMPT_MOVES[AttemptStatus.STARTED] == set(AttemptStatus) - {AttemptStatus.STARTED}
    assert all(not ATTEMPT_MOVES[status] for status in set(AttemptStatus) - {AttemptStatus.STARTED})
