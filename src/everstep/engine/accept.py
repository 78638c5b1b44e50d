"""Whether a plan and its inputs may become a task here: every problem at once, or none."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from everstep.domain.check import ToolFacts, input_problems, problems
from everstep.domain.check_limits import above_policy, limits_said
from everstep.domain.check_permissions import permission_problems, secret_problems
from everstep.domain.continued import CLIENT, SERVER
from everstep.domain.errors import PlanError, Validation
from everstep.domain.ids import Digest
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem, worst
from everstep.domain.values import JsonObject
from everstep.engine.kit import Kit

MISSING_INPUT: Final = "input.missing"
Facts: TypeAlias = Mapping[str, ToolFacts]
"""What the plan check knows of the tools."""
Naming: TypeAlias = Callable[[PlanSpec], Digest]
"""The digest of a plan."""


def check_plan(plan: PlanSpec, kit: Kit, *, trusted: bool) -> tuple[Problem, ...]:
    """Every problem of a plan with this engine's tools."""
    pools = kit.passage.pools.names | kit.catalog.pools
    reads = any(step.resources for step in (*plan.steps, *plan.finally_steps))
    schemes = kit.catalog.schemes if reads else None
    return problems(plan, kit.catalog.facts, kit.codec.validator, trusted=trusted, pools=pools, schemes=schemes)


def accept_plan(plan: PlanSpec, kit: Kit, *, trusted: bool, owner: str, also: Sequence[Problem] = ()) -> None:
    """Raises PlanError with all that is wrong."""
    found = (*check_plan(plan, kit, trusted=trusted), *also)
    if worst(found):
        raise PlanError(f"the plan '{plan.name}' has problems", (*found, *_refused(plan, kit, owner)))
    allow_plan(plan, kit, owner=owner)


def allow_plan(plan: PlanSpec, kit: Kit, *, owner: str) -> None:
    """The same of a plan that was checked a moment ago: raises PlanError with all that this owner may not use."""
    refused = tuple(_refused(plan, kit, owner))
    if refused:
        first = refused[0]
        raise PlanError(f"{first.path}: {first.message}", refused, what_to_do=first.hint)


def _refused(plan: PlanSpec, kit: Kit, owner: str) -> Iterator[Problem]:
    granted = kit.limits.consent.permissions.get(owner)
    if granted is not None:
        yield from permission_problems(plan, kit.catalog.facts, granted)
    secrets = kit.catalog.secrets
    yield from secret_problems(plan, lambda name: secrets.get(name, owner) is not None)
    yield from above_policy(plan, kit.limits.of_task)


def usual_limits(plan: PlanSpec, kit: Kit) -> TaskLimits:
    """What a task of this plan may use: the lower of what the settings and the plan say."""
    return kit.limits.of_task.lowered(limits_said(plan))


def strangers_problems(plan: PlanSpec, changed: Collection[str], kit: Kit) -> Sequence[Problem]:
    """What a trusted plan may say, but not in steps that somebody wrote whose plans are not trusted."""
    lines = {"steps": plan.steps, "finally": plan.finally_steps}
    places = tuple(f"/{at}/{n}/" for at, line in lines.items() for n, step in enumerate(line) if step.id in changed)
    usual = check_plan(plan, kit, trusted=True)
    strict = check_plan(plan, kit, trusted=False)
    return [one for one in strict if one not in usual and one.path.startswith(places)]


def is_handed(continue_by: str | None, *, unannounced: bool) -> bool:
    """Whether somebody is there to take over; raises Validation for a word that names nobody."""
    if continue_by not in (None, CLIENT, SERVER):
        raise Validation(f"'continue_by' is {CLIENT} or {SERVER}")
    return continue_by is not None or unannounced


def accept_inputs(plan: PlanSpec, inputs: JsonObject, kit: Kit, *, all_of_them: bool = True) -> None:
    """Raises PlanError for inputs that do not fit. Where somebody takes over, a missing one stops only who needs it."""
    refused = input_problems(plan, inputs, kit.codec.validator)
    if not all_of_them:
        refused = tuple(one for one in refused if one.code != MISSING_INPUT)
    if refused:
        raise PlanError(f"the inputs do not fit '{plan.name}'", refused, code="inputs_invalid")


def with_defaults(plan: PlanSpec, inputs: JsonObject) -> JsonObject:
    """Inputs with the plan's defaults filled in, so that what is recorded is what is used."""
    defaults = {spec.name: spec.schema["default"] for spec in plan.inputs if not spec.required}
    return {**defaults, **inputs}
