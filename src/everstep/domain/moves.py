"""How a fold moves a task or a step: by the tables, or the journal is broken."""

from everstep.domain.ids import StepPath, item_path, split_path
from everstep.domain.states import ENDED, STEP_MOVES, TASK_MOVES, StepStatus, TaskStatus
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
        if index == step.items_next:
            step.items_next += 1
        if state.past or state.parent is not None:
            _carry_over(state, found, step)
    return found


def _carry_over(state: TaskState, item: StepState, step: StepState) -> None:
    """An item of a new generation goes on counting where the last one stopped; the next one is the next gap."""
    item.attempts, item.tries = state.past.get(item.path, (0, 0))
    step.items_next = first_gap(state, step.path, step.items_next)


def first_gap(state: TaskState, step: str, index: int) -> int:
    """The next item, from `index` on, that has no state yet."""
    while item_path(step, index) in state.steps:
        index += 1
    return index


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
