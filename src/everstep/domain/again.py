"""Steps that are carried out after all: how an ended step is put back, and who waits for it meanwhile.

Part of `fold`, and called by nobody else.
"""

from everstep.domain.graph import items_of
from everstep.domain.ids import StepPath, split_path
from everstep.domain.states import PUT_BACK, StepStatus
from everstep.domain.task import StepState, TaskState


def run_producer(state: TaskState, producer: StepPath, blocked: StepPath) -> None:
    """Somebody wants the output of a step that gave none: the producer is to run, `blocked` waits for it."""
    put_back(state, state.steps[producer])
    state.awaiting[blocked] = producer


def put_back(state: TaskState, step: StepState) -> None:
    """An ended step without a result is pending again; those of its items that have one keep it."""
    if step.status not in PUT_BACK:
        return
    _reset(step)
    state.done -= 1
    state.ended_first = 0
    for item in items_of(state, step.path):
        if item.status in PUT_BACK:
            step.items_ended -= 1
            step.items_failed -= item.status is StepStatus.FAILED
            _reset(item)
    open_again = (split_path(item.path)[1] for item in items_of(state, step.path) if not item.ended)
    step.items_open = {item: None for item in open_again if item is not None}


def _reset(step: StepState) -> None:
    """As if it had not begun; its attempts are counted on, and its next call is a new try."""
    step.status = StepStatus.PENDING
    step.phase = step.error = step.skip_reason = step.upstream = step.started_at = step.ended_at = None
    step.clock_from = step.detour = step.grant = None
    step.spent = step.approval  # what is done anew is asked about anew
    step.tries += step.attempts > 0
    step.retries = 0
