"""Detours of a step: another tool than its first choice, a renewed credential, less work than was asked for.

A step without one is called as its plan says; that is nearly every step, so a state keeps None for it.
"""

from typing import ClassVar

from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.plan import Effect, FallbackSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject


@record
class Degraded:
    """One rung down an adapter's ladder: how far, and which arguments differ from those of the first call."""

    level: int
    set: JsonObject
    drop: tuple[str, ...] = ()


@record
class Detour:
    """How far a step is from its plain call."""

    fallback: int = 0
    """0: its own tool; n: the n-th of its fallbacks."""
    refreshes: int = 0
    degraded: Degraded | None = None


NO_DETOUR = Detour()


@record
class OffCourse:
    """A step does not get what it asked for."""


@record
class StepDenied(OffCourse):
    TYPE: ClassVar = "step.denied"
    permission: str
    why: str


@record
class StepFallback(OffCourse):
    TYPE: ClassVar = "step.fallback"
    tool_requested: str | None
    tool_used: str | None
    reason: str
    number: int
    """Which of the step's fallbacks, from 1."""


def lessened(arguments: JsonObject, degraded: Degraded | None) -> JsonObject:
    """Arguments on that rung."""
    if degraded is None:
        return arguments
    return {**{name: value for name, value in arguments.items() if name not in degraded.drop}, **degraded.set}


def next_rung(before: Degraded | None, called: JsonObject, less: JsonObject) -> Degraded | None:
    """One rung below the call that was made, as changes of the arguments the plan gave; None: it asks for the same."""
    changed = {name: value for name, value in less.items() if name not in called or called[name] != value}
    dropped = called.keys() - less.keys()
    if not changed and not dropped:
        return None
    kept = {} if before is None else {name: value for name, value in before.set.items() if name not in dropped}
    gone = (dropped | set(before.drop if before else ())) - changed.keys()
    return Degraded(level=before.level + 1 if before else 1, set={**kept, **changed}, drop=tuple(sorted(gone)))


def source_of(spec: StepSpec, detour: Detour | None) -> StepSpec | FallbackSpec:
    """What says tool, arguments, timeout and retries of the next call: the step, or the fallback in force."""
    return spec if detour is None or not detour.fallback else spec.fallback[detour.fallback - 1]


def breaker_of(spec: StepSpec, detour: Detour | None) -> str | None:
    """The breaker that the step names; a fallback does not inherit it."""
    return spec.breaker if detour is None or not detour.fallback else None


def tool_of(spec: StepSpec, detour: Detour | None) -> str | None:
    """The tool in force; None: a literal value."""
    return source_of(spec, detour).tool


def used_retries(retries: int, detour: Detour | None, category: Category) -> int:
    """How many retries of this category a step has used; `retries` are its transient ones."""
    if category is Category.PERMISSION:
        return detour.refreshes if detour else 0
    if category is Category.RESOURCE:
        return detour.degraded.level if detour and detour.degraded else 0
    return retries


def next_fallback(spec: StepSpec, detour: Detour | None, failure: Failure | None, effect: Effect | None) -> int | None:
    """The number of the fallback that may be tried now, if any.

    A fallback tool counts as calling again: after a call that may have acted it is tried only in place of a pure one.
    """
    number = (detour.fallback if detour else 0) + 1
    if number > len(spec.fallback):
        return None
    acted = failure is not None and failure.effect_state is not EffectState.NONE
    if acted and effect is not None and effect is not Effect.PURE:
        return None
    return number
