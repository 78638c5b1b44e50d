"""Where a durable function leaves what is recorded of it: the step, what the journal has there, what the code does."""

from typing import Final

from everstep.domain.canonical import canonical_text
from everstep.domain.ids import StepPath
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import Sealed
from everstep.engine.perform import Performance, Wanted

SHOWN_CHARS: Final = 200


def departure(state: TaskState, performance: Performance, *, caught_up: bool) -> tuple[StepPath, str, str] | None:
    """Where the code leaves what is recorded: the step, what the journal has there, and what the code does."""
    for path in performance.open:
        step = state.steps.get(path)
        if step is not None and begun(step) and not same(state, step, performance.wanted[path]):
            return path, _recorded(state, step), _said(performance.wanted[path])
    if not caught_up or performance.wanted.keys() >= state.specs.keys():
        return None
    for name in state.specs:
        step = state.steps[StepPath(name)]
        if step.path not in performance.wanted and begun(step):
            return step.path, _recorded(state, step), _instead(state, performance)
    return None


def begun(step: StepState) -> bool:
    """Whether something has come of it: then it is what it is."""
    return step.status is not StepStatus.PENDING


def same(state: TaskState, step: StepState, wanted: Wanted) -> bool:
    """Whether the code asks for the very call that is recorded."""
    known = step.asked
    return (
        state.specs[step.path].tool == wanted.ask.spec.tool
        and known is not None
        and known.digest == wanted.input.digest
    )


def _instead(state: TaskState, performance: Performance) -> str:
    """What the code does where the journal goes on otherwise."""
    for path in performance.open:
        if path not in state.steps:
            return _said(performance.wanted[path])
    if performance.ended is None:
        return "waits for other calls"
    return "returns" if performance.ended.error is None else f"raises {performance.ended.error!r}"


def _recorded(state: TaskState, step: StepState) -> str:
    return f"{step.path}: {state.specs[step.path].tool} {_shown(step.asked)}"


def _said(wanted: Wanted) -> str:
    return f"{wanted.ask.spec.id}: {wanted.ask.spec.tool} {_shown(wanted.input)}"


def _shown(sealed: Sealed | None) -> str:
    if sealed is None or not sealed.present:
        return "" if sealed is None else sealed.digest
    text = canonical_text(sealed.value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({sealed.digest[:19]})"
