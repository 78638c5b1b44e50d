"""Whether a plan may become a task here: every reason why not, and what the task may use."""

from collections.abc import Mapping
from dataclasses import replace

from everstep.domain.ahead import ahead
from everstep.domain.check import ToolFacts, input_problems, problems
from everstep.domain.check_limits import above_policy, limits_said
from everstep.domain.errors import PlanError, Validation
from everstep.domain.ids import Digest, Instant
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem, worst
from everstep.domain.queue import PRIORITY_MAX
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.engine.catalog import Entry
from everstep.engine.kit import Kit
from everstep.wire.limits import read_limits


@record
class Wish:
    """A plan to be carried out, and how."""

    plan: PlanSpec
    digest: Digest
    inputs: JsonObject
    trusted: bool
    key: str | None = None
    title: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 1
    pause_after: str | None = None
    limits: JsonObject | None = None
    """As a plan spells them: lower than the plan's and the settings', or not said."""
    deadline: Instant | None = None


class Acceptance:
    """The check of plans with this engine's tools; sound ones are remembered."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self.facts: Mapping[str, ToolFacts] = {entry.spec.name: facts_of(entry) for entry in kit.catalog.entries()}
        """What the plan check knows of the tools."""
        of_tools = {entry.spec.pool for entry in kit.catalog.entries() if entry.spec.pool is not None}
        self._pools = kit.passage.pools.names | of_tools
        self._sound: set[tuple[Digest, bool]] = set()

    def check(self, plan: PlanSpec, *, trusted: bool = True) -> tuple[Problem, ...]:
        """Every problem of a plan."""
        return problems(plan, self.facts, self._kit.codec.validator, trusted=trusted, pools=self._pools)

    def accept(self, wish: Wish) -> TaskLimits:
        """What the task may use; raises every reason why there is none."""
        if (wish.digest, wish.trusted) not in self._sound:
            self._check(wish)
            self._sound.add((wish.digest, wish.trusted))
        refused = input_problems(wish.plan, wish.inputs, self._kit.codec.validator)
        if refused:
            raise PlanError(f"the inputs do not fit '{wish.plan.name}'", refused, code="inputs_invalid")
        if wish.pause_after is not None and all(wish.pause_after != step.id for step in wish.plan.steps):
            raise Validation(f"the plan has no step '{wish.pause_after}'")
        if not 0 <= wish.priority <= PRIORITY_MAX:
            raise Validation(f"priority {wish.priority} is not within 0 and {PRIORITY_MAX}")
        return self._limits(wish)

    def _check(self, wish: Wish) -> None:
        found = self.check(wish.plan, trusted=wish.trusted)
        if worst(found):
            raise PlanError(f"the plan '{wish.plan.name}' has problems", found)
        above = above_policy(wish.plan, self._kit.limits.of_task)
        if above:
            raise PlanError(f"{above[0].path}: {above[0].message}", above)
        if unheard := ahead(wish.plan):
            first = unheard[0]
            raise PlanError(f"{first.path}: {first.message}", unheard, what_to_do=first.hint)

    def _limits(self, wish: Wish) -> TaskLimits:
        """The lowest of what the settings, the plan and whoever starts it say."""
        said = limits_said(wish.plan)
        most = self._kit.limits.of_task.lowered(said)
        if wish.limits is None:
            return most
        wanted = read_limits(wish.limits)
        for name, more, allowed in wanted.above(most):
            raise Validation(f"limits can only be lowered: {name} {more:g} is above {allowed:g}")
        return most.lowered(replace(wanted, on_reached=said.on_reached))


def facts_of(entry: Entry) -> ToolFacts:
    """A tool as the plan check sees it."""
    spec = entry.spec
    return ToolFacts(
        name=spec.name,
        input_schema=spec.input_schema,
        output_schema=spec.output_schema,
        effect=spec.effect,
        probeable=spec.probeable,
        validate=entry.check_input,
    )


def with_defaults(plan: PlanSpec, inputs: JsonObject) -> JsonObject:
    """Inputs with the plan's defaults filled in, so that what is recorded is what is used."""
    defaults = {spec.name: spec.schema["default"] for spec in plan.inputs if not spec.required}
    return {**defaults, **inputs}
