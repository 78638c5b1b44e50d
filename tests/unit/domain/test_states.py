"""The tables of legal moves: what the specification lists, and nothing else."""

from itertools import product

import pytest

from everstep.domain.ids import StepPath
from everstep.domain.moves import BrokenJournal, move_step
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
from tests.unit.histories import History, plan
from tests.unit.histories import step as step_of

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


STEP = {
    "pending": "running skipped",
    "running": "completed failed paused skipped",
    "paused": "running completed failed skipped",
    "completed": "",
    "failed": "",
    "skipped": "",
}


@pytest.mark.req("TU.1")
@pytest.mark.parametrize(("before", "after"), list(product(StepStatus, StepStatus)))
def test_a_step_moves_as_the_specification_says_or_not_at_all(before: StepStatus, after: StepStatus) -> None:
    legal = after.value in STEP[before.value].split()
    assert (after in STEP_MOVES[before]) == legal
    state = History(plan(step_of("a"))).state
    step = state.steps[StepPath("a")]
    step.status = before
    if legal or before is after is StepStatus.RUNNING:  # an attempt after the other
        move_step(state, step, after)
    else:
        with pytest.raises(BrokenJournal, match=f"{before} cannot become {after}"):
            move_step(state, step, after)
    assert step.status is (after if legal else before)


@pytest.mark.req("TU.1")
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


@pytest.mark.req("TU.1")
def test_an_attempt_ends_once() -> None:
    assert ATTEMPT_MOVES[AttemptStatus.STARTED] == set(AttemptStatus) - {AttemptStatus.STARTED}
    assert all(not ATTEMPT_MOVES[status] for status in set(AttemptStatus) - {AttemptStatus.STARTED})
