"""Which call a path of a task stands for, and what it means for the task when that has failed for good. Pure."""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.detour import next_fallback, source_of, tool_of
from everstep.domain.effects import expected_decision
from everstep.domain.failure import NOBODY_THERE, Failure
from everstep.domain.ids import BEFORE, StepPath, split_path
from everstep.domain.pauses import ToolErrorPause
from everstep.domain.plan import OnError, StepSpec
from everstep.domain.resources import parts_of
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import LISTED_MAX


def spec_of(state: TaskState, path: StepPath) -> StepSpec:
    """The step of the plan that a path belongs to; of a part what that part does."""
    name, item = split_path(path)
    return parts_of(state.specs[name])[item] if isinstance(item, str) else state.specs[name]


def interrupted(state: TaskState) -> tuple[e.RecoveredStep, ...]:
    """Calls in flight when their worker died, and what is expected to become of them; of very many the first."""
    steps = []
    for path in state.in_flight[:LISTED_MAX]:
        attempt = state.open[path]
        decision = expected_decision(attempt.effect, state.plan.on_uncertain(spec_of(state, path)))
        steps.append(e.RecoveredStep(step=path, attempt=attempt.number, effect=attempt.effect, decision=decision))
    return tuple(steps)


def is_final(state: TaskState, spec: StepSpec) -> bool:
    """Whether it is one of the plan's `finally` steps."""
    return any(spec.id == last.id for last in state.plan.finally_steps)


def tool_now(state: TaskState, path: StepPath) -> str | None:
    """The tool a step is called with now: its own, or the fallback it has come to; what is read before a call is for
    the call.
    """
    name, item = split_path(path)
    if item == BEFORE:
        return state.specs[name].tool
    return source_of(spec_of(state, path), state.steps[path].detour).tool


def goes_without(state: TaskState, path: StepPath, failure: Failure) -> bool:
    """Whether the task does without the step: nobody was there to be called, and the plan can do without it."""
    return failure.code in NOBODY_THERE and split_path(path)[1] is None and state.is_optional(path)


def handed_over(state: TaskState, path: StepPath, failure: Failure) -> ToolErrorPause | None:
    """The question about a step that has failed, if its plan asks one."""
    spec = spec_of(state, path)
    if state.on_error(spec) is not OnError.PAUSE or is_final(state, spec):
        return None
    return ToolErrorPause(
        failed_step=path, error=failure.message, retryable=spec.retryable, suggested_tool=tool_now(state, path)
    )


def final_error(state: TaskState, path: StepPath, error: e.ErrorRecord, dependants: tuple[str, ...]) -> e.ErrorRecord:
    """With what it means for the task: an item's failure ends no step by itself."""
    spec = spec_of(state, path)
    fatal = state.on_error(spec) is OnError.FAIL and not is_final(state, spec)
    if fatal:
        planned = (StepPath(one.id) for one in state.plan.steps)
        dependants = tuple(other for other in planned if other != spec.id and not state.steps[other].ended)
    elif split_path(path)[1] is not None:
        dependants = ()
    return replace(error, task_continues=not fatal, skipped_steps=dependants)


def fall_back(state: TaskState, step: StepState, failure: Failure, *, called: bool = True) -> e.Draft | None:
    """The step of a failed tool goes on with its next fallback, if it has one that may be tried."""
    spec = spec_of(state, step.path)
    before = failure if called else step.error.failure if step.error else None
    number = next_fallback(spec, step.detour, before, step.last_effect)
    if number is None:
        return None
    body = e.StepFallback(
        tool_requested=tool_of(spec, step.detour),
        tool_used=spec.fallback[number - 1].tool,
        reason=failure.code,
        number=number,
    )
    return e.Draft(step=step.path, body=body)
