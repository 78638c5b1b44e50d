"""The same for a durable function: which of its recorded calls stand when it goes back to one of them. Pure.

Its code has heard of outcomes in their order, so a call can depend on what had ended when it was asked for, and on
nothing else: calls beside the one it goes back to stand, those that were asked for after its end do not.
"""

from everstep.domain import events as e
from everstep.domain.errors import Validation
from everstep.domain.ids import StepPath
from everstep.domain.reopen import Again, Known, repeats
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState


def last_fault(state: TaskState) -> StepPath | None:
    """The call whose failure ended the task; None if its code failed by itself: then all calls stand."""
    if state.failing_step is not None or state.error is not None:
        return state.failing_step
    raise Validation(
        "no step failed, so nobody knows where to begin", code="inputs_invalid", what_to_do="name a step: --from STEP"
    )


def back_in_code(state: TaskState, from_step: StepPath | None, *, known: Known) -> Again:
    """What stands and what is asked for anew, from this call on."""
    roots = {*known.undone, *(() if from_step is None else (from_step,))}
    first = min((state.ends.index(path) for path in roots if path in state.ends), default=len(state.ends))
    paths = [StepPath(name) for name in state.specs]
    again = tuple(path for path in paths if path in roots or not _stands(state, path, first))
    kept = tuple(path for path in paths if path not in again)
    return Again(
        from_step=from_step or StepPath(kept[-1] if kept else ""),
        kept=kept,
        superseded=again,
        partly=(),
        repeats=tuple(one for path in again for one in repeats(state, path, known)),
    )


def _stands(state: TaskState, path: StepPath, first: int) -> bool:
    """Whether it ended by itself, and was asked for before the first end that is taken back."""
    step = state.steps[path]
    fell = step.status is StepStatus.SKIPPED and step.skip_reason is not e.SkipReason.REQUESTED
    return step.ended and not fell and step.asked_after <= first
