"""Names, numbers of things, and keys that do not go together: what a plan can be wrong about all by itself."""

import re
from collections.abc import Iterator
from typing import Final

from everstep.domain.findings import Findings
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.pointer import child
from everstep.domain.slots import RESERVED

STEPS_MAX: Final = 500
ITEMS_MAX: Final = 10_000
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_PLAN_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_TOOL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")
_TOOL_CHARS_MAX: Final = 128


def check_names(plan: PlanSpec, found: Findings) -> None:
    """Names, uniqueness, sizes, and keys that contradict each other."""
    if not _PLAN_NAME.fullmatch(plan.name):
        found.add("bad_name", "/name", f"'{plan.name}' is not a plan name", suggestion=_repaired(plan.name, "-"))
    for declared in plan.inputs:
        _check_name(declared.name, child("/inputs", declared.name), "an input name", found, on_key=True)
    for name in plan.outputs:
        _check_name(name, child("/outputs", name), "an output name", found, on_key=True)
    _check_count(plan, found)
    _check_unique(plan, found)
    for path, step, last in steps_of(plan):
        _check_step(path, step, found)
        _check_conflicts(path, step, last, found)


def steps_of(plan: PlanSpec) -> Iterator[tuple[str, StepSpec, bool]]:
    """Every step with its path, and whether it stands in `finally`."""
    for at, step in enumerate(plan.steps):
        yield f"/steps/{at}", step, False
    for at, step in enumerate(plan.finally_steps):
        yield f"/finally/{at}", step, True


def is_tool_name(name: str) -> bool:
    """Whether a tool could be called so."""
    return len(name) <= _TOOL_CHARS_MAX and _TOOL_NAME.fullmatch(name) is not None


def _check_count(plan: PlanSpec, found: Findings) -> None:
    count = len(plan.steps) + len(plan.finally_steps)
    if count > STEPS_MAX:
        found.add("too_large", "/steps", f"{count} steps, the limit is {STEPS_MAX}")
    if not plan.steps:
        found.add("bad_value", "/steps", "a plan has at least one step")


def _check_name(name: str, path: str, what: str, found: Findings, *, on_key: bool = False) -> bool:
    good = _NAME.fullmatch(name) is not None
    if not good:
        guess = _repaired(name, "_")
        found.add("bad_name", path, f"'{name}' is not {what}", suggestion=guess, on_key=on_key)
    return good


def _repaired(name: str, glue: str) -> str | None:
    """The nearest name that is allowed."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name[:128]).lower())
    repaired = glue.join(words).lstrip("0123456789_-")[:63]
    return repaired if repaired and repaired not in RESERVED else None


def _check_unique(plan: PlanSpec, found: Findings) -> None:
    """Ids and binds share one space of names; a step may use one name for both."""
    taken: dict[str, str] = {}
    for path, step, _ in steps_of(plan):
        for key, name in (("id", step.id), ("bind", step.bind)):
            if key == "bind" and step.bind == step.id:
                continue
            other = taken.setdefault(name, f"{path}/{key}")
            if other != f"{path}/{key}":
                word = other.rpartition("/")[2]
                message = f"'{name}' is already the {word} at {other}"
                found.add("duplicate_id", f"{path}/{key}", message, other=other)


def _check_step(path: str, step: StepSpec, found: Findings) -> None:
    for key, name, what in (("id", step.id, "a step id"), ("bind", step.bind, "a bind name")):
        if key == "bind" and step.bind == step.id:
            continue
        if _check_name(name, f"{path}/{key}", what, found) and name in RESERVED:
            found.add("reserved_name", f"{path}/{key}", f"'{name}' is reserved")
    tools = [("/tool", step.tool), *((f"/fallback/{at}/tool", other.tool) for at, other in enumerate(step.fallback))]
    if step.undo is not None:
        tools.append(("/undo/tool", step.undo.tool))
    for key, tool in tools:
        if tool is not None and not is_tool_name(tool):
            found.add("bad_name", path + key, f"'{tool}' is not a tool name")


_NOT_IN_FINALLY: Final = ("approve", "for_each", "on_error")
_NOT_WITHOUT_TOOL: Final = {
    "with": "arguments", "for_each": "for_each", "fallback": "fallback", "approve": "approve", "undo": "undo",
}  # fmt: skip


def _check_conflicts(path: str, step: StepSpec, last: bool, found: Findings) -> None:  # noqa: FBT001 -- a fact, not a switch
    if isinstance(step.for_each, list) and len(step.for_each) > ITEMS_MAX:
        found.add("too_large", f"{path}/for_each", f"{len(step.for_each)} items, the limit is {ITEMS_MAX}")
    if step.parallel is not None and step.for_each is None:
        found.add("key_conflict", f"{path}/parallel", "'parallel' needs 'for_each'", on_key=True)
    if last:
        for key in _NOT_IN_FINALLY:
            if getattr(step, key) is not None:
                found.add("key_conflict", f"{path}/{key}", f"a step in 'finally' takes no '{key}'", on_key=True)
    if step.tool is None:
        for key, field in _NOT_WITHOUT_TOOL.items():
            if getattr(step, field):
                found.add("key_conflict", f"{path}/{key}", f"'{key}' needs a 'tool'", on_key=True)
    _check_approval(path, step, found)
    for at, other in enumerate(step.fallback[:-1]):
        if other.tool is None:
            found.add("key_conflict", f"{path}/fallback/{at}", "'value' always succeeds, so it must come last")


def _check_approval(path: str, step: StepSpec, found: Findings) -> None:
    for key, approve in (("/approve", step.approve), ("/undo/approve", step.undo.approve if step.undo else None)):
        if approve is None:
            continue
        if approve.within_ms is not None and approve.on_timeout is None:
            found.add("key_conflict", f"{path}{key}/within", "'within' needs 'on_timeout'", on_key=True)
        if approve.on_timeout is not None and approve.within_ms is None:
            found.add("key_conflict", f"{path}{key}/on_timeout", "'on_timeout' needs 'within'", on_key=True)
        if approve.edit and step.for_each is not None and key == "/approve":
            message = "'edit' does not go with 'for_each': one question covers all items"
            found.add("key_conflict", f"{path}{key}/edit", message, on_key=True)
