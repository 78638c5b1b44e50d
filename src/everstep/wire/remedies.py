"""Errors with what can be done about them: requests that can be sent as they are, and then do what their label says.

Which actions make sense follows from the category (semantics, section 5); which requests there are, from what the task
waits for. The journal keeps none of this: what helps depends on the moment.
"""

from collections.abc import Iterator
from typing import Final

from everstep.domain.consequence import spec_of
from everstep.domain.detour import Detour, next_fallback
from everstep.domain.events import TaskFailed
from everstep.domain.explain import clock, legal_commands
from everstep.domain.failure import Category, EffectState
from everstep.domain.ids import Instant
from everstep.domain.pauses import ANSWERS, Pause, PauseType
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.wire.failure import error_json
from everstep.wire.times import to_text

WAIT_MS: Final = 300_000
"""How much later, if the other side does not say."""
_FIRST: Final[dict[Category, tuple[str, ...]]] = {
    Category.TRANSIENT: ("retry", "wait", "switch_tool"),
    Category.CONFIGURATION: ("edit", "switch_tool", "retry"),
    Category.PERMISSION: ("authorize", "switch_tool"),
    Category.RESOURCE: ("edit", "wait", "switch_tool", "retry"),
    Category.LOGIC: ("edit", "switch_tool", "retry"),
    Category.INTERNAL: ("retry", "edit", "switch_tool"),
}
"""What helps first, by category."""


def error_of_step(state: TaskState, step: StepState, called_with: Sealed | None) -> JsonObject | None:
    """A step's failure, with what can be done about it now; `called_with`: its last arguments."""
    if step.error is None:
        return None
    error = error_json(step.error, step.path, final=step.status is StepStatus.FAILED)
    arguments = called_with.value if called_with is not None and called_with.present else None
    return {**error, "suggestions": _of_step(state, step, arguments if isinstance(arguments, dict) else None)}


def error_of_task(state: TaskState) -> JsonObject | None:
    """Why a task failed, and what can be done about it."""
    if state.error is None:
        return None
    return {**error_json(state.error, state.failing_step, final=True), "suggestions": [*_of_task(state)]}


def error_of_end(body: TaskFailed) -> JsonObject:
    """The same, straight from the terminal event."""
    return error_json(body.error, body.step, final=True)


def _of_step(state: TaskState, step: StepState, called_with: JsonObject | None) -> list[JsonValue]:
    pause = state.pauses.get(step.pause) if step.pause is not None else None
    if pause is None:
        return list(_of_task(state))
    return list(_answers(state, step, pause, called_with))


def _of_task(state: TaskState) -> Iterator[JsonObject]:
    """What can be done about a task that failed, or that goes on by itself."""
    legal = legal_commands(state)
    path, step = f"/v1/tasks/{state.id}", state.failing_step
    if "retry" in legal and step is not None:
        failed = state.steps[step]
        twice = _may_have_acted(failed)
        body: JsonObject = {"from_step": step.partition("[")[0]}
        label = f"Try again from {step}" + (", although it may act a second time" if twice else "")
        yield _suggest("retry", label, f"{path}/retry", {**body, "confirm_effects": True} if twice else body)
        yield _suggest("fork", f"Go on from {step} in a task of its own", f"{path}/fork", body)
    if "cancel" in legal:
        yield _suggest("cancel", "Cancel the task", f"/v1/tasks/{state.id}/cancel", {})


def _may_have_acted(step: StepState) -> bool:
    """Whether another call might do what must not be done twice."""
    acted = step.error is not None and step.error.failure.effect_state is not EffectState.NONE
    return acted and step.last_effect is not None and not step.last_effect.repeatable


def _answers(state: TaskState, step: StepState, pause: Pause, called_with: JsonObject | None) -> Iterator[JsonObject]:
    path = f"/v1/inbox/{pause.id}/answer"
    allowed = ANSWERS[pause.type]
    if pause.type is PauseType.TOOL_ERROR:
        category = step.error.failure.category if step.error else Category.CONFIGURATION
        for action in _FIRST[category]:
            yield from _TOOL_ERROR[action](state, step, path, called_with)
    if "skip" in allowed:
        yield _suggest("skip", f"Skip {step.path}", path, {"answer": "skip"})
    if "cancel" in allowed:
        yield _suggest("cancel", "Cancel the task", path, {"answer": "cancel"})


def _suggest(action: str, label: str, path: str, body: JsonObject) -> JsonObject:
    return {"action": action, "label": label, "request": {"method": "POST", "path": path, "body": body}}


def _retry(_state: TaskState, step: StepState, path: str, _arguments: JsonObject | None) -> Iterator[JsonObject]:
    yield _suggest("retry", f"Try {step.path} again", path, {"answer": "retry"})


def _authorize(_state: TaskState, step: StepState, path: str, _arguments: JsonObject | None) -> Iterator[JsonObject]:
    yield _suggest("authorize", f"Access is granted now: try {step.path} again", path, {"answer": "retry"})


def _wait(state: TaskState, step: StepState, path: str, _arguments: JsonObject | None) -> Iterator[JsonObject]:
    wished = step.error.failure.retry_after_ms if step.error else None
    at = Instant(state.updated_at + (wished or WAIT_MS))
    yield _suggest("wait", f"Try {step.path} again at {clock(at)}", path, {"answer": "retry", "at": to_text(at)})


def _edit(_state: TaskState, step: StepState, path: str, arguments: JsonObject | None) -> Iterator[JsonObject]:
    """The arguments are those of the last call, to be edited; as they are, they are sent again."""
    if arguments:
        body: JsonObject = {"answer": "retry_with", "arguments": arguments}
        yield _suggest("edit", f"Try {step.path} again with these arguments", path, body)


def _switch_tool(state: TaskState, step: StepState, path: str, _arguments: JsonObject | None) -> Iterator[JsonObject]:
    spec = spec_of(state, step.path)
    failure = step.error.failure if step.error else None
    for number, other in enumerate(spec.fallback, start=1):
        before = Detour(fallback=number - 1)
        if other.tool is not None and next_fallback(spec, before, failure, step.last_effect):
            body: JsonObject = {"answer": "retry", "tool": other.tool}
            yield _suggest("switch_tool", f"Try {step.path} with {other.tool}", path, body)


_TOOL_ERROR: Final = {
    "retry": _retry,
    "authorize": _authorize,
    "wait": _wait,
    "edit": _edit,
    "switch_tool": _switch_tool,
}
