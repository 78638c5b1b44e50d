"""What was promised of a task, and what becomes of it: ahead, late, early. Each is said once, and only if anybody could
rely on the promise.
"""

from typing import ClassVar, TypeAlias

from everstep.domain.estimate import ENOUGH, Estimate
from everstep.domain.record import record


@record
class Promise:
    """The first estimate of a task that rests on enough history."""

    p10: float
    p50: float
    p90: float
    basis: str
    n: int


@record
class OffSchedule:
    """Common shape of what is said of a task that does not keep to its promise."""

    estimate: Promise


@record
class TaskAheadOfSchedule(OffSchedule):
    TYPE: ClassVar = "task.ahead_of_schedule"
    p50: float


@record
class TaskLate(OffSchedule):
    TYPE: ClassVar = "task.late"
    p50: float


@record
class TaskEarlyCompletion(OffSchedule):
    TYPE: ClassVar = "task.early_completion"
    actual_s: float


Said: TypeAlias = TaskAheadOfSchedule | TaskLate | TaskEarlyCompletion


def promise_of(now: Estimate, worked_s: float) -> Promise | None:
    """What a task that has worked for so long takes in all; None if that is a guess."""
    if now.p10 is None or now.p50 is None or now.p90 is None or now.basis != "history" or now.n < ENOUGH:
        return None
    low, middle, high = (round(worked_s + left, 3) for left in (now.p10, now.p50, now.p90))
    return Promise(p10=low, p50=middle, p90=high, basis=now.basis, n=now.n)


def off_schedule(promise: Promise, now: Estimate, worked_s: float) -> TaskAheadOfSchedule | TaskLate | None:
    """Late: it has worked longer than promised. Ahead: nearly certain to end before anybody was told to expect it."""
    if worked_s > promise.p90:
        return TaskLate(estimate=promise, p50=now.p50 or 0.0)
    if now.p90 is not None and now.p50 is not None and worked_s + now.p90 < promise.p10:
        return TaskAheadOfSchedule(estimate=promise, p50=now.p50)
    return None
