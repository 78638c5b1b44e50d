"""What a step takes from outside. MCP resources: where they come from is literal, every variable has a value. Pools."""

import re
from collections.abc import Collection
from typing import Final

from everstep.domain.check_names import steps_of
from everstep.domain.findings import Findings
from everstep.domain.plan import PlanSpec, ResourceSpec

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#${}]*")
_VARIABLE: Final = re.compile(r"(?<!\$)\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")


def check_resources(plan: PlanSpec, schemes: Collection[str] | None, found: Findings) -> None:
    """All resources of all steps; `schemes` are those that somebody serves, if that is known."""
    for path, step, _ in steps_of(plan):
        if step.resources and step.tool is not None and step.for_each is not None:
            message = "'for_each' calls many times: read its resources in a step of their own"
            found.add("key_conflict", f"{path}/resources", message, on_key=True)
        for at, resource in enumerate(step.resources):
            _check(resource, f"{path}/resources/{at}", found)
            scheme = resource.uri.partition("://")[0]
            if schemes is not None and "://" in resource.uri and scheme not in schemes:
                message = f"nothing serves '{scheme}://'"
                guess = found.guess("scheme", scheme, schemes)
                found.add("unknown_resource", f"{path}/resources/{at}/uri", message, suggestion=guess)


def check_pools(plan: PlanSpec, pools: Collection[str], found: Findings) -> None:
    """Every pool that a step names."""
    for path, step, _ in steps_of(plan):
        if step.pool is not None and step.pool not in pools:
            guess = found.guess("pool", step.pool, pools)
            found.add("unknown_pool", f"{path}/pool", f"no pool '{step.pool}'", suggestion=guess)


def _check(resource: ResourceSpec, path: str, found: Findings) -> None:
    origin = _ORIGIN.match(resource.uri)
    if origin is None:
        found.add("bad_value", f"{path}/uri", f"'{resource.uri}' is not a resource, write scheme://…")
    elif resource.uri[origin.end() :].startswith(("$", "{")):
        message = "a binding here would choose the server, write scheme and authority out"
        found.add("unsafe_binding", f"{path}/uri", message, span=(origin.end(), origin.end() + 1))
    names = _VARIABLE.findall(resource.uri)
    values = resource.vars or {}
    for name in names:
        if not _NAME.fullmatch(name):
            found.add("bad_value", f"{path}/uri", f"'{{{name}}}' is not a variable, write {{name}}")
        elif name not in values:
            found.add("bad_value", f"{path}/uri", f"'{{{name}}}' has no value in 'vars'")
    for name in values:
        if name not in names:
            found.add("unknown_key", f"{path}/vars/{name}", f"there is no '{{{name}}}' in the uri", on_key=True)
