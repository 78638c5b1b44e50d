"""Everything that is wrong with a plan, at once. One checker for all doors; it never raises.

A plan that reaches this file has the right shape (`wire/plan` sees to that); here it is held against itself and
against the tools. Problems name their place by JSON Pointer, and by offset inside a text.
"""

from collections.abc import Collection, Mapping

from everstep.domain.check_bindings import check_bindings
from everstep.domain.check_inputs import CompileSchema, check_inputs, input_problems
from everstep.domain.check_names import check_names
from everstep.domain.check_order import check_order
from everstep.domain.check_resources import check_pools, check_resources
from everstep.domain.check_tools import check_tools, effect_of
from everstep.domain.facts import ArgumentKind, ToolFacts, kinds_of
from everstep.domain.findings import Findings
from everstep.domain.lookup import Lookup
from everstep.domain.plan import Effect, OnUncertain, PlanSpec
from everstep.domain.problem import Problem
from everstep.domain.reach import reaches, secrets

__all__ = [
    "ArgumentKind",
    "CompileSchema",
    "ToolFacts",
    "asks",
    "input_problems",
    "kinds_of",
    "problems",
    "reaches",
    "secrets",
]


def problems(
    plan: PlanSpec,
    tools: Mapping[str, ToolFacts],
    compile_schema: CompileSchema,
    *,
    trusted: bool = True,
    pools: Collection[str] | None = None,
    schemes: Collection[str] | None = None,
) -> tuple[Problem, ...]:
    """Names and needs, tools and arguments, bindings, order, trust; `pools`, `schemes`: those there are, if known."""
    found = Findings()
    lookup = Lookup(plan, tools)
    check_names(plan, found)
    check_inputs(plan, compile_schema, found)
    check_tools(lookup, tools, found, trusted=trusted)
    check_resources(plan, schemes, found)
    if pools is not None:
        check_pools(plan, pools, found)
    uses = check_bindings(lookup, found)
    check_order(plan, uses, found)
    return tuple(found.problems)


def asks(plan: PlanSpec, tools: Mapping[str, ToolFacts]) -> tuple[str, ...]:
    """Ids of the steps that a crash or a timeout inside their call would ask about."""
    return tuple(
        step.id
        for step in plan.steps
        if plan.on_uncertain(step) is OnUncertain.ASK and _unclear(effect_of(step, tools), tools.get(step.tool or ""))
    )


def _unclear(effect: Effect, facts: ToolFacts | None) -> bool:
    """Whether an interrupted call leaves a question that only somebody can answer."""
    if effect.repeatable:
        return False
    return effect is Effect.ONCE or facts is None or not facts.probeable
