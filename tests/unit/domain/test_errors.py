"""What a refusal says where nobody catches it: in a traceback."""

import traceback

from everstep.domain.errors import PROBLEMS_SHOWN, NotFound, PlanError
from everstep.domain.problem import Problem


def test_a_traceback_says_what_to_do() -> None:
    shown = "".join(traceback.format_exception(NotFound("there is no such task")))
    assert "there is no such task\nwhat to do: list what there is: everstep ls" in shown


def test_a_traceback_lists_the_problems_of_a_plan() -> None:
    problems = [Problem(code="missing", message=f"problem {n}", path=f"/steps/{n}") for n in range(PROBLEMS_SHOWN + 1)]
    shown = "".join(traceback.format_exception(PlanError("the plan 'p' has problems", problems)))
    assert "/steps/0: problem 0\n" in shown
    assert f"problem {PROBLEMS_SHOWN}" not in shown, "one screen; `problems` has the rest"
