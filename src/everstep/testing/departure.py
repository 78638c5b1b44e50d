"""One recorded call against the plan of today."""

from everstep.domain import events as e
from everstep.domain.bindings import Resolved, resolve
from everstep.domain.graph import Graph
from everstep.domain.ids import StepPath, split_path
from everstep.domain.scope import StateScope
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonValue
from everstep.wire.values import canonical, digest_of


def departure(state: TaskState, graph: Graph, path: StepPath, was: e.AttemptStarted) -> str | None:
    """What the plan would do otherwise; None: nothing."""
    name, index = split_path(path)
    wired = graph.by_id.get(name)
    if wired is not None and isinstance(index, str):
        wired = wired.parts.get(index)
    if wired is None:
        return "the plan has no such step"
    if was.tool not in (wired.spec.tool, *(other.tool for other in wired.spec.fallback)):
        return f"it calls {wired.spec.tool} now, it called {was.tool}"
    given = state.steps[path].arguments if path in state.steps else None
    if was.tool != wired.spec.tool or was.degraded is not None or was.coerced or given:
        return None  # what an answer or a failure made of it is not the plan's
    for other in graph.by_id:
        state.steps.setdefault(StepPath(other), StepState(StepPath(other)))
    items = state.steps[StepPath(name)].items
    if isinstance(index, int) and (items is None or not isinstance(items.value, list)):
        return None
    extra = _item(items.value, index) if isinstance(index, int) and items is not None else None
    match resolve(wired.arguments, StateScope(state, graph, extra)):
        case Resolved(value=value):
            now = canonical(value)
            same = digest_of(now) == was.input.digest
            return None if same else f"it is called with {_shown(now)} now, it was with {_shown(was.input.value)}"
        case gap:
            return f"its arguments cannot be resolved now: {gap}"


def _item(items: JsonValue, index: int) -> dict[str, JsonValue]:
    assert isinstance(items, list)
    return {"item": items[index], "index": index}


def _shown(value: JsonValue | bytes) -> str:
    text = (value if isinstance(value, bytes) else canonical(value)).decode()
    return text if len(text) <= 200 else f"{text[:200]}…"
