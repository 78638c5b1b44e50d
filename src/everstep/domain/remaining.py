"""What is left of a task for whoever takes over: which calls, with which arguments, and what to know. Pure."""

from everstep.domain.bindings import compile_value, render
from everstep.domain.continuation import HANDED, at_hand, call_left, is_handoff
from everstep.domain.graph import wire_plan
from everstep.domain.ids import StepPath
from everstep.domain.pauses import Pause, PauseType
from everstep.domain.placeholder import offered, offered_address
from everstep.domain.plan import StepSpec
from everstep.domain.record import record
from everstep.domain.scope import StateScope
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject


@record
class Remaining:
    """A call that is still to be made."""

    step: StepPath
    tool: str | None
    """None: only resources are read."""
    arguments: JsonObject
    guidance: str | None


_SHOWN = {StepStatus.COMPLETED: "completed", StepStatus.FAILED: "failed", StepStatus.SKIPPED: "skipped"}


def shown_status(state: TaskState, step: StepState) -> str:
    """One of four words: what stands still for a failed call is failed, whatever else has no outcome is pending."""
    asked = at_hand(state, step).pause
    pause = state.pauses.get(asked) if asked is not None else None
    if pause is not None and pause.type is PauseType.TOOL_ERROR:
        return "failed"
    return _SHOWN.get(step.status, "pending")


def error_of(state: TaskState, step: StepState) -> str | None:
    """What a step failed of last, or the part of it that is at hand."""
    error = at_hand(state, step).error
    return None if error is None else error.failure.message


def open_question(state: TaskState) -> Pause | None:
    """What the client has to resolve first: a call of its own comes before an answer."""
    asked = [pause for pause in state.pauses.values() if not is_handoff(pause)]
    return next((pause for pause in asked if pause.type in HANDED), next(iter(asked), None))


def remaining(state: TaskState) -> tuple[Remaining, ...]:
    """A failed step first, if its plan calls it retryable; then every step without an outcome, in plan order."""
    scope = StateScope(state, wire_plan(state.plan))
    failed, pending = [], []
    for spec in state.plan.steps:
        step = state.steps[StepPath(spec.id)]
        shown = shown_status(state, step)
        if shown == "failed" and not step.ended and spec.retryable and spec.tool is not None:
            failed.append(_left(state, spec, step, scope))
        elif shown == "pending":
            pending.append(_left(state, spec, step, scope))
    return (*failed, *pending)


def _left(state: TaskState, spec: StepSpec, step: StepState, scope: StateScope) -> Remaining:
    guidance, call = guidance_of(spec, scope), call_left(state, spec)
    if call.reads:
        uris: JsonObject = {"uris": [offered_address(resource, scope) for resource in call.reads]}
        return Remaining(step=step.path, tool=None, arguments=uris, guidance=guidance)
    arguments = offered({**spec.arguments, **(step.arguments or {})}, scope)
    return Remaining(step=step.path, tool=spec.tool, arguments=arguments, guidance=guidance)


def guidance_of(spec: StepSpec, scope: StateScope) -> str | None:
    """What its plan says to whoever takes the step over, with what is known filled in."""
    return None if spec.guidance is None else render(compile_value(spec.guidance), scope)
