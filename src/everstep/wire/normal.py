"""Plans as JSON: a value in, `PlanSpec` with its problems out; and the normal form back.

The normal form is what a digest names: short forms expanded, durations and sizes canonical, what was not said left
out, arguments untouched. A plan that was stored is read back by the same tables that checked it on its way in.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from everstep.domain.ids import Digest
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.echoes import without_echoes
from everstep.wire.keys import PLAN
from everstep.wire.shape import Place
from everstep.wire.source import Located, Source
from everstep.wire.values import canonical, digest_of

DURABLE: Final = "durable"


@record
class ReadPlan:
    """What came of reading: the plan, or the problems that kept it from being one."""

    plan: PlanSpec | None
    problems: tuple[Problem, ...]
    source: Source | None = None
    draft: PlanSpec | None = None
    """What could be read of a refused plan, good only for finding its other problems."""
    located: Located | None = None

    def checked(self, check: Callable[[PlanSpec], Iterable[Problem]]) -> tuple[Problem, ...]:
        """All problems at once: those of the shape, and what `check` finds; with line and column, by position."""
        if self.plan is not None:
            return self._located(check(self.plan))
        found = () if self.draft is None else without_echoes(check(self.draft), self.problems, self.draft)
        return self._located((*self.problems, *found))

    def _located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Without a text problems keep their paths, and their order."""
        if self.located is None:
            return tuple(problems)
        placed = [problem if problem.line else self.located.locate(problem) for problem in problems]
        return tuple(sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0)))


def from_json(value: JsonValue) -> ReadPlan:
    """A plan from a JSON value: short or long forms, as in a file. Strict JSON is the caller's promise."""
    notes: list[Problem] = []
    plan: PlanSpec = PLAN.read(value, Place(notes, label="the plan"))
    if notes:
        return ReadPlan(plan=None, draft=plan, problems=tuple(notes))
    return ReadPlan(plan=plan, problems=())


def from_stored(value: JsonValue) -> ReadPlan:
    """A plan as a journal has it: also that of a durable function, which nobody can send."""
    if not isinstance(value, dict) or DURABLE not in value:
        return from_json(value)
    read = from_json({name: said for name, said in value.items() if name != DURABLE})
    return read if read.plan is None else replace(read, plan=replace(read.plan, durable=str(value[DURABLE])))


def to_json(plan: PlanSpec) -> JsonObject:
    """The normal form."""
    return PLAN.write(plan) if plan.durable is None else {**PLAN.write(plan), DURABLE: plan.durable}


def digest(plan: PlanSpec) -> Digest:
    """The name of a plan: equal for equal normal forms, whatever the spelling was. A function has name and version."""
    said: JsonObject = to_json(plan) if plan.durable is None else {"name": plan.name, DURABLE: plan.durable}
    return digest_of(canonical(said))
