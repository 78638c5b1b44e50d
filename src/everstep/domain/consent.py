"""Who wants a call asked about: the data that would steer it, the operator, the plan, or the tool. Pure.

The operator's word stands above the others: it adds questions everywhere, and takes the tool's own away only where the
plan is trusted. What comes from outside never decides a path, an address or a host of a call that has an effect.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from everstep.domain.approval import Asking
from everstep.domain.bindings import Compiled, references
from everstep.domain.canonical import canonical_text
from everstep.domain.evaluation import Absent, Scope, is_foreign_fact
from everstep.domain.facts import ArgumentKind, kind_at
from everstep.domain.record import record
from everstep.domain.values import JsonObject

Asks: TypeAlias = Literal["", "operator", "tool", "tool_of_strangers"]
"""Whose word makes a tool ask before every call; the last: its own, lifted for trusted plans."""

STEERING: Final = frozenset({ArgumentKind.CHECKED, ArgumentKind.LITERAL})


@record
class Consent:
    """The operator's rules about calls, tool by tool."""

    approve: Mapping[str, bool] = field(default_factory=dict)
    """Ask before every call; False: do not, although the tool would."""
    allow_untrusted: frozenset[str] = frozenset()
    """Tools that data from outside may steer."""
    permissions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What owners may use tools for; one that is not named may do everything."""
    llm_approvals: frozenset[str] = frozenset()
    """Tools whose calls an LLM may approve, where a trusted plan says so."""

    def asks(self, tool: str, *, by_itself: bool) -> Asks:
        """Whether a tool asks before every call, and on whose word."""
        said = self.approve.get(tool)
        if said:
            return "operator"
        if not by_itself:
            return ""
        return "tool" if said is None else "tool_of_strangers"

    @property
    def version(self) -> str:
        """A name for these rules; other rules have another, so what was granted under them is asked about anew."""
        rules: JsonObject = {
            "approve": dict(sorted(self.approve.items())),
            "untrusted": [*sorted(self.allow_untrusted)],
            "llm_approvals": [*sorted(self.llm_approvals)],
        }
        return sha256(canonical_text(rules).encode()).hexdigest()[:12]


NO_RULES: Final = Consent()


def steers(kinds: Mapping[str, ArgumentKind], pointer: str) -> bool:
    """Whether a value in this place decides what a call reaches."""
    return kind_at(kinds, pointer) in STEERING


def steered_by(
    compiled: Compiled, kinds: Mapping[str, ArgumentKind], scope: Scope, given: Collection[str] = ()
) -> str | None:
    """The first argument whose place decides what a call reaches and that something from outside has a part in.

    `given`: arguments that a person has set instead.
    """
    for reference in references(compiled):
        argument = reference.pointer.split("/")[1] if reference.pointer else ""
        if argument in given or not steers(kinds, reference.pointer):
            continue
        if reference.root == "steps":
            foreign = is_foreign_fact(reference.path)
        else:
            found = scope.root(reference.root)
            foreign = not isinstance(found, Absent) and found.untrusted
        if foreign:
            return argument
    return None


def asking(asks: Asks, steered: str | None, *, plan_asks: bool, trusted: bool) -> Asking | None:
    """Who asks before a call, the strictest first; None: nobody."""
    if steered is not None:
        return Asking(by="data", argument=steered)
    if asks == "operator":
        return Asking(by="operator")
    if plan_asks:
        return Asking(by="plan")
    return Asking(by="tool") if asks == "tool" or (asks == "tool_of_strangers" and not trusted) else None
