"""What the plan language can say and this engine does not carry out yet.

Such a plan is sound, and may be checked and shown. But a key that is quietly ignored would be a lie, above all one that
asks before a call: so no task is made of it.
"""

from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.problem import Problem


def ahead(plan: PlanSpec) -> tuple[Problem, ...]:
    """Every key that nobody would honour."""
    said: list[tuple[str, str]] = []
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


def _said(step: StepSpec) -> list[str]:
    """Resources beside a call; a step that only reads some is carried out."""
    return ["resources"] if step.resources and step.tool is not None else []
