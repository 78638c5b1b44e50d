"""What the journal says of a client's calls: taken up for one, what came of it. A part of `fold`."""

from everstep.domain.continued import SERVER, Continued, Handover, TaskContinued, TaskStarted
from everstep.domain.ids import Instant, StepPath
from everstep.domain.moves import step_of
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject


def task_started(state: TaskState, body: TaskStarted) -> None:
    """Taken up for a client's call; or by an answer, and then everything goes on."""
    between = handover_of(state)
    if body.continued is not None:
        _take_up(state, between, body.continued)
    elif body.from_status is TaskStatus.QUEUED:
        between.alone = False


def _take_up(state: TaskState, between: Handover, call: Continued) -> None:
    between.continuing = call.step
    between.key = call.key
    between.alone = True
    step = step_of(state, call.step)
    step.given = call.arguments
    if step.attempts:  # a deliberate call, with a key of its own
        step.tries += 1
    step.retries = 0
    step.detour = step.grant = step.retry_at = None
    step.spent = step.approval
    state.timers.pop(call.step, None)


def task_continued(state: TaskState, body: TaskContinued, path: StepPath | None, _at: Instant) -> None:
    """The client has its answer; the engine goes on only where that was agreed and the call succeeded."""
    between = handover_of(state)
    if body.key is not None:
        between.replies[body.key] = body
    if path is None:
        between.extra[body.tool] = body
        return
    between.continuing = between.key = None
    succeeded = state.steps[path].status is StepStatus.COMPLETED
    if between.continue_by == SERVER and succeeded:
        between.alone = False


def set_variables(state: TaskState, changes: JsonObject) -> None:
    """Null deletes."""
    between = handover_of(state)
    merged = {**between.variables, **changes}
    between.variables = {name: value for name, value in merged.items() if value is not None}


def handover_of(state: TaskState) -> Handover:
    """Made when it is needed first."""
    if state.handover is None:
        state.handover = Handover()
    return state.handover
