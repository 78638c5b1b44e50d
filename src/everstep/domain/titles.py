"""What a step is called for people, and where its arguments come from: the plan's own words, filled in."""

from everstep.domain.bindings import compile_value, references, render
from everstep.domain.graph import wire_plan
from everstep.domain.ids import StepPath, split_path
from everstep.domain.plan import StepSpec
from everstep.domain.scope import StateScope
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject

BINDING = "${"


def step_title(state: TaskState, path: StepPath) -> str:
    """The step's title with what is known filled in, or its id; an item has that of its step and its number."""
    name, index = split_path(path)
    title = state.specs[name].title or name
    if BINDING in title:
        title = render(compile_value(title), StateScope(state, wire_plan(state.plan)))
    return title if index is None else f"{title} [{index}]"


def bound_from(spec: StepSpec) -> JsonObject:
    """The arguments that hold a binding, as the plan has them."""
    return {name: value for name, value in spec.arguments.items() if references(compile_value(value))}
