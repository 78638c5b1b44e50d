"""A plan as one JSON value: read like a file, checked like a file, refused like a file."""

from collections.abc import Iterable
from pathlib import Path

from everstep.authoring.tool import FunctionTool
from everstep.domain.check import ToolFacts, problems
from everstep.domain.errors import NotFound, PlanError
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem
from everstep.domain.values import JsonObject, NotJson
from everstep.wire.plan import PLAN_BYTES_MAX, ReadPlan, from_json, read_plan
from everstep.wire.schema import compile_schema
from everstep.wire.values import canonical


def read_document(document: JsonObject, what: str) -> ReadPlan:
    """A plan from JSON; PlanError if it is not even that."""
    try:
        canonical(document)
    except NotJson as exc:
        raise PlanError(f"{what} is not JSON: {exc}") from exc
    return from_json(document)


def read_file(path: Path) -> ReadPlan:
    """A plan from its file."""
    try:
        with path.open("rb") as file:
            data = file.read(PLAN_BYTES_MAX + 1)
    except FileNotFoundError:
        raise NotFound(f"no file '{path}'", what_to_do="name a plan file") from None
    return read_plan(data, file=str(path))


def spec_of(read: ReadPlan, what: str) -> PlanSpec:
    """The plan; PlanError lists why there is none."""
    if read.plan is not None:
        return read.plan
    first, *others = read.problems
    place = f"{first.file}:{first.line}:{first.column}: " if first.line else ""
    more = f" (and {len(others)} more)" if others else ""
    raise PlanError(f"{what} has problems: {place}{first.message}{more}", read.problems)


def check(read: ReadPlan, tools: Iterable[FunctionTool[..., object]], *, trusted: bool) -> tuple[Problem, ...]:
    """Every problem that can be seen without an engine, whose other tools are not known here."""
    facts = {tool.spec.name: _facts(tool) for tool in tools}
    found = read.checked(lambda spec: problems(spec, facts, compile_schema, trusted=trusted))
    return tuple(problem for problem in found if problem.code != "plan.unknown_tool")


def _facts(tool: FunctionTool[..., object]) -> ToolFacts:
    spec = tool.spec
    return ToolFacts(
        name=spec.name,
        input_schema=spec.input_schema,
        output_schema=spec.output_schema,
        effect=spec.effect,
        timeout_ms=spec.timeout_ms,
        validate=compile_schema(spec.input_schema),
        probeable=spec.probeable,
    )
