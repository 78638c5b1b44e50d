"""Whose word a step is: only what somebody wrote whose plans are trusted may name hosts, plans and the like. Pure."""

from everstep.domain.ids import StepPath, split_path
from everstep.domain.task import TaskState


def vouches_for(state: TaskState, path: StepPath) -> bool:
    """Whether the step stands in a trusted plan as its author wrote it; an undo is made of what others returned."""
    made_up = state.parent is not None and state.parent.link == "undo_of"
    return state.trusted and not made_up and split_path(path)[0] not in state.strange
