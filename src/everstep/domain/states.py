"""Statuses, and THE tables of legal moves.

A move that is not in its table is refused with a typed conflict that names the current state. Diagrams in the docs
are drawn from these tables; the history checker has its own copy, written by hand.
"""

from enum import StrEnum
from typing import Final


class TaskStatus(StrEnum):
    """Where a task stands."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    STALLED = "stalled"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepStatus(StrEnum):
    """Where a step stands."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Phase(StrEnum):
    """What a step that is under way is doing."""

    VALIDATING = "validating"
    AWAITING_APPROVAL = "awaiting_approval"
    WAITING_SLOT = "waiting_slot"
    EXECUTING = "executing"
    RETRY_WAIT = "retry_wait"
    DONE = "done"


class AttemptStatus(StrEnum):
    """What one try of a step came to."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    ABANDONED = "abandoned"


_T = TaskStatus
TASK_MOVES: Final[dict[TaskStatus, frozenset[TaskStatus]]] = {
    _T.QUEUED: frozenset({_T.RUNNING, _T.PAUSED, _T.CANCELLING, _T.CANCELLED, _T.FAILED}),
    _T.RUNNING: frozenset({_T.PAUSING, _T.PAUSED, _T.STALLED, _T.COMPLETED, _T.FAILED, _T.CANCELLING}),
    _T.PAUSING: frozenset({_T.PAUSED, _T.STALLED, _T.COMPLETED, _T.FAILED, _T.CANCELLING}),
    _T.PAUSED: frozenset({_T.QUEUED, _T.RUNNING, _T.CANCELLING, _T.CANCELLED, _T.FAILED}),
    _T.STALLED: frozenset({_T.RUNNING, _T.PAUSED, _T.FAILED, _T.CANCELLING, _T.CANCELLED}),
    _T.CANCELLING: frozenset({_T.CANCELLED}),
    _T.COMPLETED: frozenset(),
    _T.FAILED: frozenset(),
    _T.CANCELLED: frozenset(),
}

_S = StepStatus
STEP_MOVES: Final[dict[StepStatus, frozenset[StepStatus]]] = {
    _S.PENDING: frozenset({_S.RUNNING, _S.SKIPPED}),
    # running -> skipped: only between attempts, when the task ends, somebody says so, or nobody is there to be called
    _S.RUNNING: frozenset({_S.COMPLETED, _S.FAILED, _S.PAUSED, _S.SKIPPED}),
    _S.PAUSED: frozenset({_S.RUNNING, _S.COMPLETED, _S.FAILED, _S.SKIPPED}),
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.SKIPPED: frozenset(),
}

_A = AttemptStatus
ATTEMPT_MOVES: Final[dict[AttemptStatus, frozenset[AttemptStatus]]] = {
    _A.STARTED: frozenset({_A.SUCCEEDED, _A.FAILED, _A.TIMED_OUT, _A.KILLED, _A.ABANDONED}),
    _A.SUCCEEDED: frozenset(),
    _A.FAILED: frozenset(),
    _A.TIMED_OUT: frozenset(),
    _A.KILLED: frozenset(),
    _A.ABANDONED: frozenset(),
}

PUT_BACK: Final = frozenset({_S.FAILED, _S.SKIPPED})
"""Ended steps that an answer of a step which needs them may put back: `run_producer`, `supply_output`."""
TERMINAL: Final = frozenset(status for status, to in TASK_MOVES.items() if not to)
ENDED: Final = frozenset(status for status, to in STEP_MOVES.items() if not to)
HELD: Final = frozenset({_T.RUNNING, _T.PAUSING, _T.CANCELLING})
"""Statuses in which a worker may hold the task's lease."""
CLAIMABLE: Final = frozenset({_T.QUEUED, _T.STALLED, _T.CANCELLING})
"""Statuses in which a task that nobody holds may be claimed."""

CHILD: Final = "child"
"""The kind of a durable wait for another task."""
EVENT: Final = "event"
"""The kind of a durable wait for a signal."""


class SkipReason(StrEnum):
    """Why a step did not run."""

    CONDITION = "condition"
    GOAL_MET = "goal_met"
    TASK_FAILED = "task_failed"
    TASK_CANCELLED = "task_cancelled"
    UPSTREAM = "upstream"
    TOOL_UNAVAILABLE = "tool_unavailable"
    REQUESTED = "requested"
    COMPLETED_BY_CLIENT = "completed_by_client"
