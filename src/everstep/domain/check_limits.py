"""Limits that a plan sets itself: within what the settings allow."""

from everstep.domain.limits import TaskLimits
from everstep.domain.plan import LimitsSpec, PlanSpec
from everstep.domain.problem import Problem


def limits_said(plan: PlanSpec) -> TaskLimits:
    """What the plan says of its whole task."""
    return as_task_limits(plan.limits)


def as_task_limits(said: LimitsSpec) -> TaskLimits:
    """Those limits that hold for a whole task."""
    return TaskLimits(
        calls=said.calls,
        cost=said.cost,
        wall_time_ms=said.wall_time_ms,
        output_bytes=said.output_bytes,
        cpu_time_ms=said.cpu_time_ms,
        disk_bytes=said.disk_bytes,
        memory_bytes=said.memory_bytes,
        on_reached=said.on_reached or "pause",
    )


def above_policy(plan: PlanSpec, most: TaskLimits) -> tuple[Problem, ...]:
    """Every limit of the plan that is higher than the settings allow."""
    return tuple(
        Problem(
            code="plan.limit_above_policy",
            message=f"{name} {wanted:g} is above {allowed:g}",
            path=f"/limits/{name}",
            on_key=True,
            hint=f"lower it, or raise `limits.{name}` in the settings",
        )
        for name, wanted, allowed in limits_said(plan).above(most)
    )
