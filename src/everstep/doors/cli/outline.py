"""A plan on one screen: its steps in order, what each calls, what it waits for, and how careful it is. Pure."""

from typing import Any, TypeAlias

from everstep.doors.cli.render import table
from everstep.doors.cli.words import safe
from everstep.domain.plan import OnError, PlanSpec, StepSpec

Json: TypeAlias = dict[str, Any]


def outline(plan: PlanSpec, summary: Json) -> list[str]:
    """One line per step."""
    effects: Json = summary.get("effects") or {}
    effect_of = (
        {step: effect for effect, steps in effects.items() for step in steps} if _by_effect(effects) else effects
    )
    rows = []
    for number, step in enumerate(plan.steps, 1):
        rows.append(
            (f"{number:>3}", step.id, step.tool or "resource.read", str(effect_of.get(step.id, "")), _notes(plan, step))
        )
    for step in plan.finally_steps:
        rows.append(("end", step.id, step.tool or "resource.read", str(effect_of.get(step.id, "")), "always"))
    return table(rows)


def _by_effect(effects: Json) -> bool:
    return all(isinstance(steps, list) for steps in effects.values())


def _notes(plan: PlanSpec, step: StepSpec) -> str:
    notes = []
    if step.needs is not None:
        notes.append(f"after {', '.join(step.needs)}" if step.needs else "at once")
    if step.when is not True:
        notes.append(f"when {safe(str(step.when))}")
    if step.for_each is not None:
        notes.append(f"for each of {safe(str(step.for_each))}")
    if step.approve is not None:
        notes.append("asks first")
    if plan.on_error(step) is not OnError.FAIL:
        notes.append(f"on error {plan.on_error(step)}")
    return "; ".join(notes)
