"""Estimates and progress as their objects at every door (interfaces, 5.2 and 5.4)."""

from typing import TypeAlias

from everstep.domain import simulate
from everstep.domain.estimate import Estimate
from everstep.domain.ids import StepPath
from everstep.domain.progress import ALMOST, progress_of
from everstep.domain.task import TaskRow, TaskState
from everstep.domain.values import JsonObject
from everstep.wire.times import maybe_text

Outlook: TypeAlias = simulate.Outlook


def estimate_json(estimate: Estimate | None) -> JsonObject | None:
    """Seconds of work left; null once there is none."""
    if estimate is None:
        return None
    return {
        "p10": estimate.p10,
        "p50": estimate.p50,
        "p90": estimate.p90,
        "basis": estimate.basis,
        "n": estimate.n,
        "waiting_on": estimate.waiting_on,
        "as_of": maybe_text(estimate.as_of),
    }


def outlook_json(outlook: Outlook, *, terminal: bool = False) -> JsonObject:
    """Of the task, and of each step that has not ended."""
    return {
        "task": None if terminal else estimate_json(outlook.task),
        "steps": {path: estimate_json(one) for path, one in outlook.steps.items()},
    }


def task_estimate(state: TaskState, outlook: Outlook | None) -> JsonObject | None:
    """Of a task that goes on, if anybody has looked."""
    return None if outlook is None or state.terminal else estimate_json(outlook.task)


def step_estimate(path: StepPath, outlook: Outlook | None) -> JsonObject | None:
    """Of a step that has not ended."""
    return None if outlook is None else estimate_json(outlook.steps.get(path))


def progress_json(state: TaskState, outlook: Outlook | None = None) -> JsonObject:
    """How far a task has come: by weight where weights are known."""
    progress = progress_of(state) if outlook is None or outlook.progress is None else outlook.progress
    return {
        "fraction": progress.fraction,
        "done": progress.done,
        "total": progress.total,
        "current": list(progress.current),
    }


def row_progress_json(row: TaskRow, steps: int) -> JsonObject:
    """The same of a task of which only its row is known: every step weighs the same."""
    left = min(row.done / steps, ALMOST) if steps else 0.0  # a durable function has as many as it asks for
    fraction = 1.0 if row.ended_at is not None else left
    return {"fraction": round(fraction, 4), "done": row.done, "total": max(steps, row.done), "current": None}
