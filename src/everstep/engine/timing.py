"""How long an attempt and a step may take, and how often: by step or fallback, plan, tool, settings."""

from dataclasses import replace
from typing import Final

from everstep.domain.consequence import spec_of
from everstep.domain.detour import source_of
from everstep.domain.ids import Instant, Millis, StepPath
from everstep.domain.policy import RetryPolicy, out_of_time, retry_policy
from everstep.domain.task import TaskState
from everstep.engine.kit import Kit

STEP_MS_LEAST: Final = 600_000
ATTEMPTS_PER_STEP: Final = 10
"""A step gets the larger of ten minutes and ten times its timeout, unless it or its tool says otherwise."""


def timeout_of(state: TaskState, path: StepPath, kit: Kit) -> Millis:
    """How long one attempt may take."""
    said = source_of(spec_of(state, path), state.steps[path].detour)
    entry = kit.catalog.find(said.tool or "")
    of_tool = entry.spec.timeout_ms if entry is not None else None
    return Millis(said.timeout_ms or state.plan.defaults.timeout_ms or of_tool or kit.limits.step_timeout_ms)


def retry_rule(state: TaskState, path: StepPath, kit: Kit) -> RetryPolicy:
    """The rule in force for the tool in force, with the step's deadline."""
    said = source_of(spec_of(state, path), state.steps[path].detour)
    entry = kit.catalog.find(said.tool or "")
    rule = retry_policy(state.plan, said.retry, entry.spec.retries if entry else None, kit.limits.retry)
    if rule.within_ms is not None:
        return rule
    within = entry.spec.step_timeout_ms if entry is not None else None
    least = max(STEP_MS_LEAST, ATTEMPTS_PER_STEP * timeout_of(state, path, kit))
    return replace(rule, within_ms=Millis(within or least))


def attempt_ends(state: TaskState, path: StepPath, kit: Kit, at: Instant) -> Millis:
    """How long an attempt may take that starts now: its timeout, cut at the step's deadline while that is to come."""
    timeout = timeout_of(state, path, kit)
    began = state.steps[path].counted_from
    within = retry_rule(state, path, kit).within_ms
    left = 0 if began is None or within is None else began + within - at
    return Millis(min(timeout, left)) if left > 0 else timeout


def too_late(state: TaskState, path: StepPath, kit: Kit, at: Instant, *, now: Instant) -> bool:
    """Whether the step's own time, which may begin only now, will be over at that time."""
    return out_of_time(retry_rule(state, path, kit), state.steps[path].counted_from or now, at)
