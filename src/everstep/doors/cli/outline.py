"""A plan on one screen: its steps in order, what each calls, what it waits for, and how careful it is. Pure."""

from typing import Any, TypeAlias

from everstep.domain.plan import OnError, PlanSpec, StepSpec
from everstep.doors.cli.render import table
from everstep.doors.cli.words import about, safe

Json: TypeAlias = dict[str, Any]


def outline(plan: PlanSpec, tools: list[Json]) -> list[str]:
    """One line per step; `tools` say how careful each is."""
    effects = {tool["name"]: tool["effect"] for tool in tools}

    def row(number: str, step: StepSpec, notes: str) -> tuple[str, ...]:
        effect = step.effect or effects.get(step.tool or "", "")
        return number, step.id, step.tool or "resource.read", str(effect), notes

    rows = [row(f"{number:>3}", step, _notes(plan, step)) for number, step in enumerate(plan.steps, 1)]
    return table([*rows, *(row("end", step, "always") for step in plan.finally_steps)])


def expected_lines(expected: Json) -> list[str]:
    """What each step would take, and all of them."""
    rows = [(safe(step), about(one)) for step, one in expected["steps"].items()]
    return table([*rows, ("together", about(expected["task"]))])


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
