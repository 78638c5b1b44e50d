"""Whose word a step is: only what somebody wrote whose plans are trusted may name hosts, plans and the like. Pure.

And whose word an argument is that was set later: a person's is as good as the plan's; any other is data.
"""

from collections.abc import Mapping
from typing import Final

from everstep.domain import events as e
from everstep.domain.actors import ActorKind
from everstep.domain.ids import StepPath, split_path
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject

NOBODY: Final[frozenset[str]] = frozenset()


def vouches_for(state: TaskState, path: StepPath) -> bool:
    """Whether the step stands in a trusted plan as its author wrote it; an undo is made of what others returned."""
    made_up = state.parent is not None and state.parent.link == "undo_of"
    return state.trusted and not made_up and state.strange.get(split_path(path)[0], NOBODY) is not None


def holds_strange_steps(state: TaskState) -> bool:
    """Whether a stranger wrote some of its plan."""
    return None in state.strange.values()


def given_by_others(state: TaskState, path: StepPath) -> frozenset[str]:
    """Arguments of a step that were set by no person."""
    return state.strange.get(path) or NOBODY


def note_givers(state: TaskState, event: e.Recorded) -> None:
    """Who has set arguments. An edited call is not among them: whoever may approve it may edit it."""
    for path, arguments in _given(event).items():
        known = state.strange.get(path, NOBODY)
        if known is None:
            continue
        others = known - arguments.keys() if event.actor.kind is ActorKind.HUMAN else known | arguments.keys()
        if others:
            state.strange[path] = others
        else:
            state.strange.pop(path, None)


def _given(event: e.Recorded) -> Mapping[str, JsonObject]:
    match event.body:
        case e.PauseAnswered(answer=answer, arguments=dict() as arguments) if answer != "edit" and event.step:
            return {event.step: arguments}
        case e.TaskReopened(arguments=by_step):
            return by_step
        case e.TaskUpdated(changes={"arguments": dict() as by_step}):
            return {path: one for path, one in by_step.items() if isinstance(one, dict)}
        case _:
            return {}
