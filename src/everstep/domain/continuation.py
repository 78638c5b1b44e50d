"""Whether a task takes a client's call, and which step it is. Pure: nothing is called that cannot be recorded."""

from typing import Final

from everstep.domain.continued import TAKEN_OVER, ClientCall, TaskContinued
from everstep.domain.errors import Conflict
from everstep.domain.graph import items_of
from everstep.domain.ids import AFTER, CALL, StepPath, item_path, split_path
from everstep.domain.lookup import RESOURCE_TOOL
from everstep.domain.pauses import Pause, PauseType, UserRequested
from everstep.domain.plan import ResourceSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.resources import needs_output
from everstep.domain.states import TERMINAL, StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskState

HANDED: Final = frozenset(
    {
        PauseType.UNRESOLVABLE_PARAMS,
        PauseType.SCHEMA_MISMATCH,
        PauseType.TOOL_ERROR,
        PauseType.UNRESOLVED_DEPENDENCY,
    }
)
"""Pauses that a client resolves by calls of its own; the others want an answer."""


def is_handoff(pause: Pause) -> bool:
    """Whether the task only waits for its client."""
    return isinstance(pause.reason, UserRequested) and pause.reason.by == TAKEN_OVER


def takes_calls(state: TaskState, *, halted: bool) -> None:
    """Raises the conflict that names why no call is made."""
    if state.status in TERMINAL:
        raise _refused(state, "task_terminal", f"the task is {state.status}", "start another one, or retry it")
    if state.status is not TaskStatus.PAUSED:
        raise _refused(state, "task_busy", f"the task is {state.status}", "wait until it is paused")
    held = [one for one in state.pauses.values() if one.of_the_task and not is_handoff(one)]
    if held or halted:
        why = held[0].title if held else "everything is halted"
        raise Conflict(
            f"the task stands still: {why}",
            code="task_paused",
            what_to_do="resume it first",
            details={"status": state.status.value},
        )
    if not any(one.type in HANDED or is_handoff(one) for one in state.pauses.values()):
        oldest = next(iter(state.pauses.values()))
        raise answer_needed(state, oldest)


def match_step(state: TaskState, tool: str) -> StepPath | None:
    """The first step in plan order with this tool that has no outcome; None if the call is no step's."""
    for spec in state.plan.steps:
        step = state.steps[StepPath(spec.id)]
        if spec.for_each is not None or step.ended:
            continue
        left = call_left(state, spec)
        if left.tool != tool:
            continue
        stands = at_hand(state, step)
        pause = state.pauses.get(stands.pause) if stands.pause is not None else None
        if stands.status is StepStatus.PAUSED and pause is not None and pause.type not in HANDED:
            raise answer_needed(state, pause)
        return left.path
    return None


@record
class CallLeft:
    """What is to be called for a step that has not ended; `reads`: it is a read of these."""

    path: StepPath
    tool: str
    reads: tuple[ResourceSpec, ...] = ()


def call_left(state: TaskState, spec: StepSpec) -> CallLeft:
    """The step's own call; if it has been made, and only something is to be read after it, that."""
    path = StepPath(spec.id)
    if spec.tool is None:
        return CallLeft(path=path, tool=RESOURCE_TOOL, reads=spec.resources)
    if not spec.resources:
        return CallLeft(path=path, tool=spec.tool)
    call = state.steps.get(item_path(path, CALL))
    if call is None or call.status is not StepStatus.COMPLETED:
        return CallLeft(path=item_path(path, CALL), tool=spec.tool)
    after = tuple(one for one in spec.resources if needs_output(spec, one))
    return CallLeft(path=item_path(path, AFTER), tool=RESOURCE_TOOL, reads=after)


def at_hand(state: TaskState, step: StepState) -> StepState:
    """The step itself, or the part of it that has come to no end."""
    parts = (one for one in items_of(state, step.path) if isinstance(split_path(one.path)[1], str))
    return next((one for one in parts if not one.ended), step)


def answer_needed(state: TaskState, pause: Pause) -> Conflict:
    """The refusal of a call that somebody must decide about first."""
    return _refused(
        state, "answer_needed", f"the task waits for an answer: {pause.title}", f"answer {pause.id}", pause=pause
    )


def _refused(state: TaskState, code: str, message: str, what_to_do: str, *, pause: Pause | None = None) -> Conflict:
    asked = {} if pause is None else {"pause": pause.id}
    return Conflict(message, code=code, what_to_do=what_to_do, details={"status": state.status.value, **asked})


@record
class CameOf:
    """What came of a client's call: the step it was, or none."""

    step: StepPath | None
    said: TaskContinued
    task: TaskState


def came_of(state: TaskState, path: StepPath, call: ClientCall) -> TaskContinued | None:
    """What came of a client's call; None if it was not made, and waits for somebody."""
    between, step = state.handover, state.steps[path]
    if between is not None and between.continuing == path and state.status is TaskStatus.PAUSED:
        return None
    completed = step.status is StepStatus.COMPLETED
    failure = None if completed or step.error is None else step.error.failure
    return TaskContinued(tool=call.tool, output=step.output if completed else None, failure=failure, key=call.key)


def not_made(state: TaskState) -> Conflict:
    """The refusal of a call that somebody is asked about first, or that the task did not live to see."""
    if state.status in TERMINAL or not state.pauses:
        return _refused(state, "task_terminal", f"the task is {state.status}", "start another one, or retry it")
    return answer_needed(state, next(iter(state.pauses.values())))
