"""What a plan may not use: tools that need what its owner does not have, secrets that are not there."""

from collections.abc import Callable, Collection, Iterator, Mapping

from everstep.domain.bindings import compile_value, references
from everstep.domain.check_names import steps_of
from everstep.domain.check_tools import calls_of
from everstep.domain.facts import ToolFacts
from everstep.domain.permissions import lacking
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem


def permission_problems(plan: PlanSpec, tools: Mapping[str, ToolFacts], granted: Collection[str]) -> Iterator[Problem]:
    """Every call of a plan that would be denied."""
    for path, step, _ in steps_of(plan):
        for call in calls_of(path, step):
            facts = tools.get(call.tool)
            permission = None if facts is None else lacking(facts.permissions, granted)
            if permission is not None:
                yield Problem(
                    code="plan.permission_denied",
                    message=f"'{call.tool}' needs '{permission}', which is not granted",
                    path=f"{call.path}/tool",
                    hint="grant it in `policy.permissions`, or use another tool",
                )


def secret_problems(plan: PlanSpec, known: Callable[[str], bool]) -> Iterator[Problem]:
    """Every secret that a plan names and nobody has registered, or not for this owner."""
    for path, step, _ in steps_of(plan):
        for call in calls_of(path, step):
            for one in references(compile_value(call.arguments)):
                name = str(one.path[0]) if one.root == "secrets" and one.path else None
                if name is not None and not known(name):
                    yield Problem(
                        code="plan.unknown_secret",
                        message=f"there is no secret '{name}' here",
                        path=f"{call.path}/with{one.pointer}",
                        hint=f"register it: EVERSTEP_SECRET_{name.upper()}",
                    )
