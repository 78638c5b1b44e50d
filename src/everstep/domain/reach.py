"""What a plan would touch: secrets, and where data from outside reaches an effect. Nothing runs for that. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from everstep.domain.bindings import Reference, compile_value, references
from everstep.domain.check_tools import effect_of
from everstep.domain.consent import steers
from everstep.domain.evaluation import is_foreign_fact
from everstep.domain.facts import ArgumentKind, ToolFacts, kind_at, kinds_of
from everstep.domain.plan import Effect, PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.values import JsonValue

ITEM: Final = "item"


@record
class Reach:
    """Data from outside in an argument of a call that has an effect."""

    step: str
    argument: str
    source: str
    """The step whose output it is."""
    asks: bool
    """Whether it would decide what the call reaches: then somebody is asked first."""


def reaches(plan: PlanSpec, tools: Mapping[str, ToolFacts]) -> tuple[Reach, ...]:
    """Every place where that happens, in the order of the plan."""
    foreign = {step.bind: step.id for step in plan.steps if not _ours(step, tools)}
    found: dict[tuple[str, str, str], Reach] = {}
    for step in (*plan.steps, *plan.finally_steps):
        if effect_of(step, tools) is Effect.PURE:
            continue
        items = [*_sources(step.for_each, foreign)]
        facts = tools.get(step.tool or "")
        steerable = facts.steerable if facts is not None else None
        for reference in references(compile_value(step.arguments)):
            argument = reference.pointer.split("/")[1] if reference.pointer else ""
            asks = steerable is not None and steers(steerable, reference.pointer)
            sources = [one for _, one in items] if reference.root == ITEM else _source(reference, foreign)
            for source in sources:
                known = found.get((step.id, argument, source))
                asks = asks or (known is not None and known.asks)
                found[step.id, argument, source] = Reach(step=step.id, argument=argument, source=source, asks=asks)
    return tuple(found.values())


def secrets(plan: PlanSpec, tools: Mapping[str, ToolFacts]) -> tuple[str, ...]:
    """Names of secrets that its steps use."""
    named: dict[str, None] = {}
    for step in (*plan.steps, *plan.finally_steps):
        facts = tools.get(step.tool or "")
        kinds = kinds_of(facts.input_schema) if facts is not None else {}
        for name, value in step.arguments.items():
            if isinstance(value, str) and kind_at(kinds, f"/{name}") is ArgumentKind.SECRET:
                named[value] = None
    return tuple(named)


def _ours(step: StepSpec, tools: Mapping[str, ToolFacts]) -> bool:
    facts = tools.get(step.tool or "")
    return facts is not None and facts.trusted_output


def _sources(value: JsonValue, foreign: Mapping[str, str]) -> Iterator[tuple[Reference, str]]:
    for reference in references(compile_value(value)):
        for source in _source(reference, foreign):
            yield reference, source


def _source(reference: Reference, foreign: Mapping[str, str]) -> list[str]:
    if reference.root == "steps":
        return [str(reference.path[0])] if reference.path and is_foreign_fact(reference.path) else []
    return [foreign[reference.root]] if reference.root in foreign else []
