"""Plans: what is wrong with one, what it would do, and the schema that editors and models write by."""

from collections import Counter

from everstep.domain.check import asks, input_problems, reaches, secrets
from everstep.domain.check_tools import effect_of
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import worst
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response, reply
from everstep.doors.api.sources import plan_source, problems_of, requested_plan
from everstep.wire.estimate import Outlook, estimate_json, outlook_json
from everstep.wire.planschema import plan_schema
from everstep.wire.schema import compile_schema
from everstep.wire.show import to_json


async def check(back: Backing, asked: Asked) -> Response:
    """Every problem at once; nothing is started."""
    source = plan_source(back, asked)
    found = problems_of(back, source)
    plan, inputs = source.read.plan, asked.fields.map("inputs")
    if plan is not None and inputs is not None:
        found = (*found, *input_problems(plan, inputs, compile_schema))
    valid = plan is not None and not worst(found)
    expected = estimate_json((await _expected(back, asked)).task) if valid else None
    return reply({
        "valid": valid,
        "problems": [to_json(problem) for problem in found],
        "summary": None if plan is None else {**_summary(plan, back), "estimate": expected},
    })  # fmt: skip


def _summary(plan: PlanSpec, back: Backing) -> JsonObject:
    facts = back.desk.facts
    effects = Counter(effect_of(step, facts).value for step in plan.steps)
    return {
        "steps": len(plan.steps) + len(plan.finally_steps),
        "approvals": [step.id for step in plan.steps if step.approve is not None],
        "effects": {**effects},
        "asks": [*asks(plan, facts)],
        "secrets": [*secrets(plan, facts)],
        "untrusted": [
            {"step": one.step, "argument": one.argument, "from": one.source, "asks": one.asks}
            for one in reaches(plan, facts)
        ],
    }


async def _expected(back: Backing, asked: Asked) -> Outlook:
    plan, inputs = requested_plan(back, asked), asked.fields.map("inputs") or {}
    return await back.desk.forecast.of_plan(plan.spec, plan.digest, inputs, asked.who)


async def estimate(back: Backing, asked: Asked) -> Response:
    """What a task of this plan would take, as far as anybody knows; nothing is started."""
    return reply(outlook_json(await _expected(back, asked)))


async def schema(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """JSON Schema of a plan, with the tools that are here."""
    return reply(plan_schema({entry.spec.name: entry.spec.input_schema for entry in back.desk.tools}))
