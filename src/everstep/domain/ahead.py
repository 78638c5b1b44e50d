"""What the plan language can say and this engine does not carry out yet.

Such a plan is sound, and may be checked and shown. But a key that is quietly ignored would be a lie, above all one that
asks before a call: so no task is made of it.
"""

from collections.abc import Iterator

from everstep.domain.plan import LimitsSpec, PlanSpec, StepSpec
from everstep.domain.problem import Problem

_STEP_KEYS = ("resources",)
_OF_TASKS = {"memory_bytes": "memory", "cpu_time_ms": "cpu_time", "disk_bytes": "disk"}
"""Limits of a whole task that nobody keeps to."""


def ahead(plan: PlanSpec) -> tuple[Problem, ...]:
    """Every key that nobody would honour."""
    said = [*_limits("", plan.limits)]
    for place, steps in (("/steps", plan.steps), ("/finally", plan.finally_steps)):
        for n, step in enumerate(steps):
            said += [(f"{place}/{n}", key) for key in _said(step)]
    return tuple(
        Problem(
            code="plan.not_carried_out",
            message=f"'{key}' is understood, but not carried out by this version",
            path=f"{path}/{key}",
            on_key=True,
            hint="leave it out, or wait for a version that honours it",
        )
        for path, key in said
    )


def _limits(path: str, limits: LimitsSpec | None) -> Iterator[tuple[str, str]]:
    if limits is not None:
        for field, key in _OF_TASKS.items():
            if getattr(limits, field) is not None:
                yield f"{path}/limits", key


def _said(step: StepSpec) -> list[str]:
    return [key for key in _STEP_KEYS if getattr(step, key)]
