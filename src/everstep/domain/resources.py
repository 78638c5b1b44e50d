"""Resources of a step. One that only reads some is a call of `resource.read` underneath; one that also calls a tool
consists of parts: what is read before the call, the call, and what is read after it because it needs its output. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from everstep.domain.bindings import compile_value, references
from everstep.domain.ids import AFTER, BEFORE, CALL
from everstep.domain.lookup import RESOURCE_TOOL
from everstep.domain.plan import PlanSpec, ResourceSpec, StepSpec
from everstep.domain.values import JsonObject, JsonValue

_BOUND: Final = re.compile(r"(?<!\$)\$\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?<!\$)\{([A-Za-z0-9_]+)\}")


def as_called(spec: StepSpec) -> StepSpec:
    """The step with the call it makes; one that has a tool is what it is. Nobody takes a read over as a retry."""
    if spec.tool is not None or not spec.resources:
        return spec
    return replace(_read(spec, spec.resources), retryable=False)


def parts_of(spec: StepSpec) -> dict[str, StepSpec]:
    """A step with resources beside its call, part by part; nothing for any other. Only the call is asked about."""
    if spec.tool is None or not spec.resources:
        return {}
    after = tuple(one for one in spec.resources if needs_output(spec, one))
    before = tuple(one for one in spec.resources if one not in after)
    bare = replace(spec, approve=None, fallback=(), undo=None, effect=None, pool=None, breaker=None, limits=None)
    parts = {BEFORE: _read(bare, before), CALL: replace(spec, resources=()), AFTER: _read(bare, after)}
    return {name: part for name, part in parts.items() if name == CALL or part.arguments["uris"]}


def _read(spec: StepSpec, resources: tuple[ResourceSpec, ...]) -> StepSpec:
    return replace(spec, tool=RESOURCE_TOOL, arguments={"uris": [*map(wanted, resources)]}, resources=())


def needs_output(spec: StepSpec, resource: ResourceSpec) -> bool:
    """Whether it can be read only after the step's own call."""
    return any(one.root == spec.bind for one in references(compile_value(wanted(resource))))


def specs_of(plan: PlanSpec) -> dict[str, StepSpec]:
    """Every step by its id, with the call that it makes."""
    return {spec.id: spec if spec.tool is not None else as_called(spec) for spec in (*plan.steps, *plan.finally_steps)}


def wanted(resource: ResourceSpec) -> JsonValue:
    """One resource as an argument: its uri, or a template with values that are put in encoded."""
    values: JsonObject = dict(resource.vars or {})

    def variable(found: "re.Match[str]") -> str:
        name = f"_{len(values)}"
        values[name] = found[0]
        return f"{{{name}}}"

    uri = _BOUND.sub(variable, resource.uri)
    return {"uri": uri, "vars": values} if values else uri


def filled(uri: str, values: Mapping[str, JsonValue]) -> str:
    """RFC 6570, level 1: every variable is replaced by its value, percent-encoded."""
    return _VARIABLE.sub(lambda found: quote(_text(values.get(found[1])), safe=""), uri)


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def scheme_of(uri: str) -> str:
    """What stands before `://`."""
    return uri.partition("://")[0]
