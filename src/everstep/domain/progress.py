"""How far a task has come: a pure function of its state. Never falls within a generation; 1 only at the end."""

from collections.abc import Mapping
from typing import Final

from everstep.domain import graph
from everstep.domain.ids import StepPath
from everstep.domain.record import record
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState

ALMOST: Final = 0.99
"""The most an unfinished task can have done."""
LEAST: Final = 0.01
"""What a step weighs at least, of the usual weight: an end is always seen."""


@record
class Progress:
    """Finished steps of all, and those under way."""

    fraction: float
    done: int
    total: int
    current: tuple[StepPath, ...]


def progress_of(state: TaskState, weights: Mapping[StepPath, float] | None = None, floor: float = 0.0) -> Progress:
    """Finished weight of all weight; a `for_each` counts by its items. Without weights all steps weigh the same.

    Weights are what steps are expected to take, and change with what is learned; `floor` is what was told before.
    """
    steps = [state.steps[StepPath(name)] for name in state.specs]
    current = tuple(step.path for step in steps if step.status in (StepStatus.RUNNING, StepStatus.PAUSED))
    if state.plan.durable is not None:
        fraction = 1.0 if state.terminal else max(floor, _stages_passed(state))
        return Progress(fraction=round(fraction, 4), done=state.done, total=len(steps), current=current)
    known = [weight for weight in (weights or {}).values() if weight > 0]
    usual = sum(known) / len(known) if known else 1.0
    least = usual * LEAST
    done = total = 0.0
    for step in steps:
        weight = max(least, (weights or {}).get(step.path, usual))
        total += weight
        done += weight * step_fraction(step)
    fraction = 1.0 if state.terminal else min(max(floor, done / total), ALMOST) if steps else 0.0
    return Progress(fraction=round(fraction, 4), done=state.done, total=len(steps), current=current)


def _stages_passed(state: TaskState) -> float:
    """The share of its stages, tools or step ids, of which a durable function has a result; it knows no other end."""
    done = {path for path, step in state.steps.items() if step.ended}
    tools = {state.specs[path].tool for path in done if path in state.specs}
    passed = sum(
        stage in tools or any(path.rpartition("_")[0] == stage or path == stage for path in done)
        for stage in state.stages
    )
    return min(passed / len(state.stages), ALMOST) if state.stages else 0.0


def step_fraction(step: StepState) -> float:
    """How far one step is: ended or not, or its items."""
    if step.ended:
        return 1.0
    items = items_of(step)
    return step.items_ended / items if items else 0.0


def items_of(step: StepState) -> int | None:
    """How many items a `for_each` goes over; None if that is not known here."""
    value = step.items.value if step.items is not None else None
    return len(value) if isinstance(value, list) else None


def item_counts(state: TaskState, step: StepState) -> dict[str, int | None] | None:
    """How the items of a `for_each` stand: how many there are, and how those that ended did; None for other steps."""
    if step.items is None:
        return None
    begun = [item.status for item in graph.items_of(state, step.path)]
    ends = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)
    return {"total": items_of(step), **{end.value: begun.count(end) for end in ends}}
