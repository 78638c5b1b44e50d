"""How a fold moves a task or a step: by the tables, or the journal is broken."""

from everstep.domain.events import SkipReason
from everstep.domain.graph import first_gap
from everstep.domain.ids import Instant, StepPath, item_path, split_path
from everstep.domain.states import ENDED, STEP_MOVES, TASK_MOVES, Phase, StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskState


class BrokenJournal(AssertionError):
    """The journal says something that cannot follow from what it said before."""


def step_of(state: TaskState, path: StepPath) -> StepState:
    """The state of a step; the first look at an item makes it."""
    found = state.steps.get(path)
    if found is None:
        found = state.steps[path] = StepState(path=path)
        name, index = split_path(path)
        if index is None:
            raise BrokenJournal(f"{state.id}: the plan has no step {path}")
        step = state.steps[StepPath(name)]
        found.arguments = step.arguments
        step.items_open[index] = None
        if isinstance(index, int) and index == step.items_next:
            step.items_next = first_gap(state, step.path, index + 1)
        if state.past:  # an item of a new generation goes on counting where the last one stopped
            found.attempts, found.tries, found.settled = state.past.get(path, (0, 0, 0))
    return found


def move_task(state: TaskState, to: TaskStatus) -> None:
    """By the table, or not at all."""
    if to not in TASK_MOVES[state.status]:
        raise BrokenJournal(f"{state.id}: {state.status} cannot become {to}")
    state.status = to


def move_step(state: TaskState, step: StepState, to: StepStatus) -> None:
    """By the table, or not at all; who is under way is counted."""
    before = step.status
    if to not in STEP_MOVES[before]:
        if before is to is StepStatus.RUNNING:
            return
        raise BrokenJournal(f"step {step.path}: {before} cannot become {to}")
    step.status = to
    if step.path[-1] != "]":
        state.under_way += (to not in ENDED) - (before is not StepStatus.PENDING)


def end_task(state: TaskState, to: TaskStatus, at: Instant) -> None:
    """Nothing of it is open any more."""
    move_task(state, to)
    state.ended_at = at
    state.budget.rest(at)
    state.worker = None
    state.hurried = False
    state.pauses.clear()
    state.timers.clear()
    state.children.clear()
    state.listening.clear()


def end_step(state: TaskState, step: StepState, to: StepStatus, at: Instant) -> None:
    """It has its outcome."""
    move_step(state, step, to)
    if step.attempt is not None:
        step.attempt = None
        state.open.pop(step.path, None)
    step.wait = None
    if state.children:
        state.children.pop(step.path, None)
    if state.listening:
        state.listening.pop(step.path, None)
    if state.awaiting:
        state.awaiting.pop(step.path, None)
    step.phase = Phase.DONE
    step.retry_at = None
    state.timers.pop(step.path, None)
    step.pause = None
    step.ended_at = at
    name, index = split_path(step.path)
    if index is None:
        state.done += 1
        if state.plan.durable is not None:
            state.ends.append(step.path)
    else:
        parent = state.steps[StepPath(name)]
        parent.items_open.pop(index)
        parent.items_ended += 1
        parent.items_failed += to is StepStatus.FAILED


def skip_all(state: TaskState, paths: tuple[StepPath, ...], reason: SkipReason, at: Instant) -> None:
    """What an ending task leaves undone: steps and items; a step takes those of its items along that are not named."""
    for path in paths:
        step = step_of(state, path)
        if step.items_open:
            skip_all(state, tuple(item_path(path, item) for item in step.items_open), reason, at)
        if not step.ended:
            end_step(state, step, StepStatus.SKIPPED, at)
            step.skip_reason = reason
