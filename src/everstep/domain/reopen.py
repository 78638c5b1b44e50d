"""From which step again: what stands, what is done anew, and which effects would then be made a second time. Pure.

Retry and fork share the rule. Superseded are the step, all that wait for it in any way, what failed the task, what was
skipped because of that, and the `finally` steps. Of a list whose arguments are the same, completed items stand.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from everstep.domain.errors import Conflict, Validation
from everstep.domain.events import SkipReason
from everstep.domain.failure import EffectState
from everstep.domain.graph import Graph, items_of
from everstep.domain.ids import StepPath
from everstep.domain.pauses import PauseType
from everstep.domain.plan import Effect, OnError
from everstep.domain.record import record
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue

_WITH_THE_TASK: Final = frozenset({SkipReason.TASK_FAILED, SkipReason.TASK_CANCELLED})
RETRIABLE: Final = frozenset({TaskStatus.FAILED, TaskStatus.COMPLETED})


@record
class Repeat:
    """An effect that would be made a second time."""

    step: StepPath
    tool: str | None
    effect: Effect


@record
class Again:
    """What going back to a step means, in the order of the plan."""

    from_step: StepPath
    kept: tuple[StepPath, ...]
    superseded: tuple[StepPath, ...]
    partly: tuple[StepPath, ...]
    """Superseded lists whose completed items stand."""
    repeats: tuple[Repeat, ...]


@record
class Known:
    """What the state does not tell: effects behind outcomes that no attempt here made, and outcomes taken back."""

    effects: Mapping[StepPath, Effect]
    undone: Collection[StepPath] = ()


def first_failed(state: TaskState) -> StepPath:
    """Where a retry begins if nobody says; a task without a failed step has no such place."""
    for name in state.specs:
        step = state.steps[StepPath(name)]
        if step.status is StepStatus.FAILED:
            return step.path
    for name in state.specs:
        step = state.steps[StepPath(name)]
        if state.status is TaskStatus.FAILED and step.skip_reason is SkipReason.TASK_FAILED:
            return step.path
    raise Validation(
        "no step failed, so nobody knows where to begin", code="inputs_invalid", what_to_do="name a step: --from STEP"
    )


def named_step(state: TaskState, name: str) -> StepPath:
    """A step of the plan; raises what a person can correct."""
    path = StepPath(name)
    if name not in state.specs:
        message = did_you_mean(f"the task has no step '{name}'", suggest(name, state.specs))
        raise Validation(message, code="inputs_invalid", what_to_do=f"its steps: everstep show {state.id}")
    return path


def back_to(state: TaskState, graph: Graph, from_step: StepPath, given: Collection[str], *, known: Known) -> Again:
    """What stands and what is done anew, from this step on; `given` are the steps that get other arguments."""
    roots = {from_step, *known.undone, *(path for path in _of_plan(state) if _fell_with_task(state, path))}
    superseded = _waiting_for(graph, roots)
    again = tuple(path for path in _of_plan(state) if path in superseded)
    partly = tuple(path for path in again if _items_stand(state, graph, path, superseded) and path not in given)
    return Again(
        from_step=from_step,
        kept=tuple(path for path in _of_plan(state) if path not in superseded and state.steps[path].ended),
        superseded=again,
        partly=partly,
        repeats=tuple(repeat for path in again for repeat in repeats(state, path, known, partly)),
    )


def _of_plan(state: TaskState) -> Iterable[StepPath]:
    return (StepPath(name) for name in state.specs)


def _fell_with_task(state: TaskState, path: StepPath) -> bool:
    """Skipped because the task ended, or the very step that made it fail."""
    step = state.steps[path]
    critical = state.on_error(state.specs[path]) is not OnError.CONTINUE
    return step.skip_reason in _WITH_THE_TASK or (step.status is StepStatus.FAILED and critical)


def _waiting_for(graph: Graph, roots: Collection[StepPath]) -> set[StepPath]:
    """These steps, all that wait for them in any way, and the `finally` steps."""
    found = {*roots, *(wired.path for wired in graph.final)}
    while True:
        more = {w.path for w in graph.steps if w.path not in found and not found.isdisjoint(w.waits_for)}
        if not more:
            return found
        found |= more


def _items_stand(state: TaskState, graph: Graph, path: StepPath, superseded: set[StepPath]) -> bool:
    """Whether a list goes on with what it has: nothing it waits for is done anew, and some item completed."""
    if state.steps[path].items is None or not superseded.isdisjoint(graph.by_id[path].waits_for):
        return False
    return any(item.status is StepStatus.COMPLETED for item in items_of(state, path))


def repeats(state: TaskState, path: StepPath, known: Known, partly: Collection[StepPath] = ()) -> Iterable[Repeat]:
    """The step, if doing it anew makes an effect again that was, or may have been, made."""
    if path in known.undone:  # it was taken back
        return
    spec = state.specs[path]
    steps = [state.steps[path], *items_of(state, path)]
    if path in partly:
        steps = [step for step in steps if step.status is not StepStatus.COMPLETED]
    effects = [effect for step in steps if (effect := _made(step, known)) is not None]
    worst = max(effects, key=lambda effect: effect.care, default=Effect.PURE)
    if not worst.repeatable:
        yield Repeat(step=path, tool=spec.tool, effect=worst)


def _made(step: StepState, known: Known) -> Effect | None:
    """The effect that stands behind a step, if it acted or may have."""
    effect = known.effects.get(step.path) or step.last_effect
    acted = step.status is StepStatus.COMPLETED or (
        step.error is not None and step.error.failure.effect_state is not EffectState.NONE
    )
    return effect if acted else None


def busy_step(state: TaskState, again: Again, graph: Graph) -> StepPath | None:
    """A step that a fork would keep, but whose call may be under way, or may have acted: nobody knows yet."""
    chosen = _waiting_for(graph, {again.from_step})
    for path in _of_plan(state):
        steps = [state.steps[path], *items_of(state, path)]
        if path not in chosen and any(_uncertain(state, step) for step in steps):
            return path
    return None


def _uncertain(state: TaskState, step: StepState) -> bool:
    if step.in_flight or step.path in state.children:
        return True
    pause = state.pauses.get(step.pause) if step.pause is not None else None
    if pause is not None and pause.type is PauseType.UNCERTAIN_OUTCOME:
        return True
    settled = step.ended and step.skip_reason not in _WITH_THE_TASK
    unclear = step.error is not None and step.error.failure.effect_state is EffectState.UNKNOWN
    return not settled and unclear and step.last_effect is not Effect.PURE


def require_again(again: Again, arguments: Mapping[str, JsonObject]) -> None:
    """Other arguments only for what is done anew."""
    for name in arguments:
        if name not in again.superseded:
            raise Validation(
                f"step '{name}' is kept, so it cannot get other arguments",
                code="inputs_invalid",
                what_to_do=f"begin at it or before it: --from {name}",
                details={"step": name},
            )


def require_confirmed(again: Again, *, confirmed: bool) -> None:
    """An effect is made a second time only if somebody says so."""
    if again.repeats and not confirmed:
        names = ", ".join(f"{one.step} ({one.tool}, {one.effect.value})" for one in again.repeats)
        raise Conflict(
            f"these effects would be made again: {names}",
            code="effects_would_repeat",
            what_to_do="confirm it (confirm_effects, --yes), or begin at a later step",
            details={"repeats": repeats_json(again.repeats)},
        )


def repeats_json(repeats: Iterable[Repeat]) -> list[JsonValue]:
    """As a reply lists them."""
    return [{"step": one.step, "tool": one.tool, "effect": one.effect.value} for one in repeats]
