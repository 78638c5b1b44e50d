"""Resources of a step: a step that only reads some is a call of `resource.read` underneath. Pure."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from everstep.domain.lookup import RESOURCE_TOOL
from everstep.domain.plan import PlanSpec, ResourceSpec, StepSpec
from everstep.domain.values import JsonObject, JsonValue

_BOUND: Final = re.compile(r"(?<!\$)\$\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?<!\$)\{([A-Za-z0-9_]+)\}")


def as_called(spec: StepSpec) -> StepSpec:
    """The step with the call it makes; one that has a tool is what it is. Nobody takes a read over as a retry."""
    if spec.tool is not None or not spec.resources:
        return spec
    return replace(spec, tool=RESOURCE_TOOL, arguments={"uris": [*map(wanted, spec.resources)]}, retryable=False)


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
