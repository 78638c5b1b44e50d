"""A call that is no step of a plan: a plan of its own, with exactly these arguments."""

from typing import Final

from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.values import JsonObject, JsonValue

CALL: Final = "call"
"""Its name, and its one step's."""


def one_call(tool: str, arguments: JsonObject) -> PlanSpec:
    """The plan; nothing in the arguments is a binding."""
    literal = {name: _literal(value) for name, value in arguments.items()}
    step = StepSpec(id=CALL, bind=CALL, tool=tool, arguments=literal)
    return PlanSpec(name=CALL, title=tool, steps=(step,), outputs={"result": f"${{{CALL}}}"})


def _literal(value: JsonValue) -> JsonValue:
    """The same in the language of plans: what looks like a binding is text."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_literal(one) for one in value]
    if isinstance(value, dict):
        return {name: _literal(one) for name, one in value.items()}
    return value
