"""The tables of legal moves, copied by hand from the specification.

A test holds them against the engine's, so editing one alone fails. Standard library only, like all of the judge.
"""

from collections.abc import Mapping
from typing import Final

TASK_MOVES: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"running", "paused", "cancelling", "cancelled", "failed"}),
    "running": frozenset({"pausing", "paused", "stalled", "completed", "failed", "cancelling"}),
    "pausing": frozenset({"paused", "stalled", "completed", "failed", "cancelling"}),
    "paused": frozenset({"queued", "running", "cancelling", "cancelled", "failed"}),
    "stalled": frozenset({"running", "paused", "failed", "cancelling", "cancelled"}),
    "cancelling": frozenset({"cancelled"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
STEP_MOVES: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"running", "skipped"}),
    "running": frozenset({"completed", "failed", "paused", "skipped"}),
    "paused": frozenset({"running", "completed", "failed", "skipped"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "skipped": frozenset(),
}
ATTEMPT_MOVES: Final[Mapping[str, frozenset[str]]] = {
    "started": frozenset({"succeeded", "failed", "timed_out", "killed", "abandoned"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "timed_out": frozenset(),
    "killed": frozenset(),
    "abandoned": frozenset(),
}
PUT_BACK: Final[Mapping[str, frozenset[str]]] = {
    "run_producer": frozenset({"failed", "skipped"}),
    "supply_output": frozenset({"failed", "skipped"}),
}
"""Answers of a step that lacks an output, and in which states the producer is put back to `pending` by them."""
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
ENDED: Final = frozenset({"completed", "failed", "skipped"})
OF_THE_TASK: Final = frozenset({"userRequested", "limitReached", "resourcePressure"})
"""Pauses that hold back every step, whatever is answered to another one."""
AGAIN: Final = frozenset({"supply_arguments", "retry", "retry_with", "not_happened", "answer", "approve", "edit"})
"""Answers after which the step itself goes on."""
