"""Limits of a task that come with the request to start it: spelled as in a plan."""

from everstep.domain.check_limits import as_task_limits
from everstep.domain.errors import Validation
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import LimitsSpec
from everstep.domain.problem import Problem
from everstep.domain.values import JsonValue
from everstep.wire.keys import PLAN_LIMITS
from everstep.wire.shape import Place


def read_limits(given: JsonValue) -> TaskLimits:
    """`{"calls": 20, "wall_time": "1h"}`; raises Validation."""
    notes: list[Problem] = []
    read = PLAN_LIMITS.read(given, Place(notes, "limits", "'limits'"))
    if notes:
        raise Validation("; ".join(note.message for note in notes))
    assert isinstance(read, LimitsSpec)
    return as_task_limits(read)
