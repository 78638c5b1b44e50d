"""Tools and their arguments: known, complete, of the right kind, and no more daring than the plan may be."""

from collections.abc import Iterator, Mapping
from typing import Final

from everstep.domain.bindings import Compiled
from everstep.domain.check_names import is_tool_name, steps_of
from everstep.domain.described import Described, NoField, field
from everstep.domain.expression import refs
from everstep.domain.facts import ArgumentKind, ToolFacts, kind_at, kinds_of
from everstep.domain.findings import Findings
from everstep.domain.lookup import RESOURCE_TOOL, Lookup
from everstep.domain.plan import Effect, OnUncertain, PlanSpec, StepSpec
from everstep.domain.pointer import child, keys
from everstep.domain.record import record
from everstep.domain.values import JsonObject

Tools = Mapping[str, ToolFacts]

SWITCHES: Final[Mapping[str, str]] = {
    "browser.act": "browser.enabled",
    "browser.read": "browser.enabled",
    "browser.screenshot": "browser.enabled",
    "llm.chat": "llm.endpoints",
    "llm.json": "llm.endpoints",
    "mail.send": "mail.server",
    "search.web": "search.providers",
    "shell.run": "shell.commands",
    "webhook.send": "webhook.targets",
}
"""Tools that are off by themselves, and the setting that each needs."""


@record
class PlannedCall:
    """One call a plan may make: of a step, of a fallback, of an undo."""

    path: str
    tool: str
    arguments: JsonObject


def check_tools(lookup: Lookup, tools: Tools, found: Findings, *, trusted: bool) -> None:
    """Every call of every step."""
    plan = lookup.plan
    for path, step, last in steps_of(plan):
        for call in calls_of(path, step):
            facts = tools.get(call.tool)
            if facts is None and not is_tool_name(call.tool):
                continue
            if facts is None:
                hint = _off(call.tool)
                guess = None if hint else found.guess("tool", call.tool, tools)
                found.add("unknown_tool", f"{call.path}/tool", f"no tool '{call.tool}'", suggestion=guess, hint=hint)
            else:
                _check_arguments(call, facts, lookup, found)
        facts = tools.get(step.tool or RESOURCE_TOOL)
        if facts is not None:
            _check_care(path, step, tools, found)
            _check_limits(path, step, facts, found)
            _check_edit(path, step, facts, found)
        if not trusted:
            _check_trust(path, step, plan, found, last=last, effect=effect_of(step, tools))


def _off(tool: str) -> str | None:
    """How to have a tool that this version knows and the settings leave out."""
    setting = SWITCHES.get(tool) or ("mcp.servers" if tool.startswith("mcp.") else None)
    return setting and f"it is there when the settings have `{setting}`"


def calls_of(path: str, step: StepSpec) -> Iterator[PlannedCall]:
    """All calls a step may make, in the order of its keys."""
    if step.tool is not None:
        yield PlannedCall(path=path, tool=step.tool, arguments=step.arguments)
    for at, other in enumerate(step.fallback):
        if other.tool is not None:
            yield PlannedCall(path=f"{path}/fallback/{at}", tool=other.tool, arguments=other.arguments or {})
    if step.undo is not None:
        yield PlannedCall(path=f"{path}/undo", tool=step.undo.tool, arguments=step.undo.arguments)


def effect_of(step: StepSpec, tools: Tools) -> Effect:
    """The more careful of what the tool and the plan say; unknown tools are `once`."""
    if step.tool is None:
        declared = Effect.PURE
    else:
        facts = tools.get(step.tool)
        declared = facts.effect if facts else Effect.ONCE
    return max(declared, step.effect or declared, key=lambda effect: effect.care)


# --- arguments ------------------------------------------------------------------------------------------------------


def _check_arguments(call: PlannedCall, facts: ToolFacts, lookup: Lookup, found: Findings) -> None:
    compiled = lookup.compiled(f"{call.path}/with", call.arguments)
    pointers = [text.pointer for text in compiled.texts] + [error.pointer for error in compiled.errors]
    bound = {keys(pointer)[0] for pointer in pointers}
    unknown = _check_known(call, facts, found)
    missing = _check_complete(call, facts, found)
    constant = {name: value for name, value in call.arguments.items() if name not in bound}
    whole = not bound and not unknown and not missing
    for pointer, message in facts.validate(constant):
        argument = keys(pointer)[0] if pointer else ""
        if argument not in unknown and (argument or whole):
            label = label_of(pointer) if pointer else call.tool
            found.add("bad_argument", f"{call.path}/with{pointer}", f"'{label}' {message}")
    if compiled.texts:
        kinds = facts.kinds if facts.kinds is not None else kinds_of(facts.input_schema)
        _check_kinds(call, compiled, kinds, found)
        _check_secrets(call, compiled, kinds, lookup, found=found)


def label_of(pointer: str) -> str:
    """An argument, or a part of it, as people write it: `argv[0]`."""
    argument, *inner = keys(pointer)
    return argument + "".join(f"[{key}]" for key in inner)


def _check_known(call: PlannedCall, facts: ToolFacts, found: Findings) -> set[str]:
    unknown: set[str] = set()
    for name in call.arguments:
        if found.full:
            break
        place = field(facts.input_schema, name, facts.input_schema)
        if isinstance(place, NoField):
            unknown.add(name)
            guess = found.guess(f"argument of {call.tool}", name, place.names)
            path = child(f"{call.path}/with", name)
            found.add("unknown_argument", path, f"'{call.tool}' has no '{name}'", suggestion=guess, on_key=True)
    return unknown


def _check_complete(call: PlannedCall, facts: ToolFacts, found: Findings) -> bool:
    required = facts.input_schema.get("required")
    names = [f"'{name}'" for name in required if name not in call.arguments] if isinstance(required, list) else []
    if names:
        listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        found.add("missing_argument", f"{call.path}/with", f"'{call.tool}' needs {listed}")
    return bool(names)


def _check_kinds(call: PlannedCall, compiled: Compiled, kinds: Mapping[str, ArgumentKind], found: Findings) -> None:
    for text in compiled.texts:
        if kind_at(kinds, text.pointer) is ArgumentKind.LITERAL:
            message = f"a binding in '{label_of(text.pointer)}' would choose the program, write it out"
            found.add("unsafe_binding", f"{call.path}/with{text.pointer}", message, span=text.expressions[0].span)


def _check_secrets(
    call: PlannedCall, compiled: Compiled, kinds: Mapping[str, ArgumentKind], lookup: Lookup, *, found: Findings
) -> None:
    for text in compiled.texts:
        allowed = kind_at(kinds, text.pointer) is ArgumentKind.SECRET
        alone = text.alone
        for ref in (ref for expression in text.expressions for ref in refs(expression)):
            if not lookup.is_secret(ref) or (allowed and alone):
                continue
            label = label_of(text.pointer)
            message = f"a secret may not go into '{label}'" if not allowed else f"a secret stands alone in '{label}'"
            found.add("secret_exposed", f"{call.path}/with{text.pointer}", message, span=ref.span)


# --- care and trust -------------------------------------------------------------------------------------------------


def _check_care(path: str, step: StepSpec, tools: Tools, found: Findings) -> None:
    """A plan may only be more careful than a tool, and a fallback only as daring as what it replaces."""
    effect = effect_of(step, tools)
    if step.effect is not None and step.effect is not effect:
        message = f"'effect: {step.effect}' is less careful than the tool's '{effect}'"
        found.add("effect_raised", f"{path}/effect", message)
    if step.approve is not None and step.approve.on_timeout == "approve" and not effect.repeatable:
        message = f"waiting may not approve a '{effect}' tool"
        found.add("policy_denied", f"{path}/approve/on_timeout", message)
    for at, other in enumerate(step.fallback):
        facts = tools.get(other.tool or "")
        if facts is not None and facts.effect.care > effect.care:
            message = f"'{other.tool}' acts as '{facts.effect}', more than the '{effect}' it stands in for"
            found.add("effect_raised", f"{path}/fallback/{at}/tool", message)


def _check_limits(path: str, step: StepSpec, facts: ToolFacts, found: Findings) -> None:
    if step.limits is None or facts.killable:
        return
    for key, limit in (("memory", step.limits.memory_bytes), ("cpu_time", step.limits.cpu_time_ms)):
        if limit is not None:
            message = f"'{key}' holds only for tools with a process of their own, not for '{facts.name}'"
            found.add("key_conflict", f"{path}/limits/{key}", message, on_key=True)


def _check_edit(path: str, step: StepSpec, facts: ToolFacts, found: Findings) -> None:
    edit = step.approve.edit if step.approve else ()
    for at, name in enumerate(edit if isinstance(edit, tuple) else ()):
        place = field(facts.input_schema, name, facts.input_schema)
        if not isinstance(place, Described):
            guess = found.guess(f"argument of {facts.name}", name, place.names)
            message = f"'{facts.name}' has no '{name}'"
            found.add("unknown_argument", f"{path}/approve/edit/{at}", message, suggestion=guess)


def _check_trust(path: str, step: StepSpec, plan: PlanSpec, found: Findings, *, last: bool, effect: Effect) -> None:
    """What only a trusted plan may say (plan-and-python, section 6)."""
    if last and not effect.repeatable:
        found.add("policy_denied", f"{path}/tool", f"'finally' of an untrusted plan takes no '{effect}' tool")
    if plan.on_uncertain(step) is OnUncertain.RETRY and not effect.repeatable:
        where = f"{path}/on_uncertain" if step.on_uncertain else "/defaults/on_uncertain"
        found.add("policy_denied", where, f"an untrusted plan may not call a '{effect}' tool again by itself")
    for key, approve in (("/approve", step.approve), ("/undo/approve", step.undo.approve if step.undo else None)):
        if approve is not None and approve.by != "human":
            found.add("policy_denied", f"{path}{key}/by", "in an untrusted plan only people approve")
        if approve is not None and approve.on_timeout == "approve":
            message = "in an untrusted plan no approval is given by waiting"
            found.add("policy_denied", f"{path}{key}/on_timeout", message)
