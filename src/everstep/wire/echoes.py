"""Problems that only follow from other problems, and would send the reader looking in the wrong place.

When the shape of a plan is wrong, what could be read of it is checked all the same, so that everything comes out at
once. A key that was refused then looks like a key that was left out: what is found because of that is an echo.
"""

import re
from collections.abc import Iterable
from typing import Final

from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem, Severity

_STEP: Final = re.compile(r"/(?:steps|finally)/[0-9]+")
_STEP_NAMES: Final = re.compile(r"/steps|/finally|.*/bind")
_INCOMPLETE: Final = frozenset({"plan.unknown_key", "plan.missing_key"})
_MISSING_KEYS: Final = frozenset({"/name", "/steps"})
"""What the plan itself may lack."""


def without_echoes(found: Iterable[Problem], shape: tuple[Problem, ...], draft: PlanSpec) -> tuple[Problem, ...]:
    """What was found in a refused plan, less what its shape already explains. Warnings wait until it is right."""
    silent = _silent(shape, draft)
    refused = tuple(problem.path for problem in shape if problem.path)
    missing = _MISSING_KEYS if len(refused) < len(shape) else frozenset()
    unclear = {_step(problem.path) for problem in shape if problem.code in _INCOMPLETE}
    return tuple(
        problem
        for problem in found
        if problem.severity is Severity.ERROR
        and problem.code not in silent
        and problem.path not in missing
        and not any(problem.path == path or problem.path.startswith(f"{path}/") for path in refused)
        and not (problem.code == "plan.missing_argument" and _step(problem.path) in unclear)
    )


def _silent(shape: tuple[Problem, ...], draft: PlanSpec) -> set[str]:
    """What cannot be told when some names could not be read."""
    silent: set[str] = set()
    steps = (*draft.steps, *draft.finally_steps)
    if not all(step.id for step in steps) or any(_STEP_NAMES.fullmatch(problem.path) for problem in shape):
        silent |= {"plan.unknown_reference", "plan.unknown_step"}
    if any(problem.path.startswith("/inputs") for problem in shape):
        silent.add("plan.unknown_input")
    return silent


def _step(path: str) -> str:
    match = _STEP.match(path)
    return match[0] if match else ""
