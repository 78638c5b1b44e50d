"""Bindings of a plan: they parse, they name what exists where they stand, and their types go together."""

import re
from typing import Final

from everstep.domain.bindings import Absent, Compiled, Found, SyntaxProblem, references, test
from everstep.domain.check_order import Use
from everstep.domain.check_types import BOOLEAN, LIST, Look, Types, check_types, types_in
from everstep.domain.described import types
from everstep.domain.expression import FUNCTIONS, Expression, Ref, Span, refs
from everstep.domain.findings import Findings
from everstep.domain.lookup import Known, Lookup, Nothing
from everstep.domain.slots import Outputs, Slot, Wants, slots
from everstep.domain.suggest import FUNCTIONS as SYNONYMS
from everstep.domain.values import JsonValue


def check_bindings(lookup: Lookup, found: Findings) -> list[Use]:
    """Check every binding; gives who uses whom, for the check of the order."""
    check = _Check(lookup, found)
    for slot in slots(lookup.plan):
        check.slot(slot)
    check.unused_inputs()
    return check.uses


class _Check:
    """One walk over a plan's bindings."""

    def __init__(self, lookup: Lookup, found: Findings) -> None:
        self.uses: list[Use] = []
        self._lookup = lookup
        self._found = found
        self._used_inputs: set[str | int] = set()
        self._curly: set[str] = set()

    def slot(self, slot: Slot) -> None:
        """One place."""
        if slot.value is None:
            return
        compiled = self._lookup.compiled(slot.path, slot.value)
        for error in compiled.errors:
            self._syntax(slot, error)
        if compiled.texts:
            self._texts(slot, compiled)
        if slot.wants is Wants.CONDITION and not compiled.errors:
            self._never(slot, compiled)
        if self._lookup.plan.inputs:
            self._curly.update(_curly_inputs(slot.value))

    def _texts(self, slot: Slot, compiled: Compiled) -> None:
        optional = {
            (slot.path + reference.pointer, reference.parts[0])
            for reference in references(compiled)
            if reference.optional
        }
        for text in compiled.texts:
            path = slot.path + text.pointer
            for expression in text.expressions:
                if self._found.full:
                    return
                for ref in refs(expression):
                    self._ref(ref, slot, path, optional=(path, ref.parts[0]) in optional)
                self._types(expression, slot, path, alone=text.alone and not text.pointer)

    def unused_inputs(self) -> None:
        """Inputs that nothing uses."""
        for declared in self._lookup.plan.inputs:
            if declared.name not in self._used_inputs:
                written = f"${{inputs.{declared.name}}}" if declared.name in self._curly else None
                message = f"input '{declared.name}' is never used"
                path = f"/inputs/{declared.name}"
                self._found.warn("unused_input", path, message, on_key=True, suggestion=written)

    def _syntax(self, slot: Slot, error: SyntaxProblem) -> None:
        why = error.why
        guess = why.suggestion or (self._found.guess("function", why.name, FUNCTIONS, SYNONYMS) if why.name else None)
        self._found.add(why.code, slot.path + error.pointer, why.message, span=why.span, suggestion=guess)

    def _ref(self, ref: Ref, slot: Slot, path: str, *, optional: bool) -> None:
        if ref.root == "inputs":
            self._used_inputs.update(ref.path[:1] or (declared.name for declared in self._lookup.plan.inputs))
        known = self._lookup.find(ref, slot)
        if isinstance(known, Nothing):
            self._nothing(known, ref, path)
            return
        if self._lookup.is_secret(ref) and not slot.path.endswith("/with"):
            self._found.add("secret_exposed", path, f"a secret may not go into '{_key(path)}'", span=ref.span)
        if known.undescribed is not None and ref.path:
            message = f"'{known.undescribed}' describes no output"
            self._found.warn("unchecked_field", path, message, span=ref.span)
        source = self._lookup.source(ref)
        if source is None:
            return
        if slot.step is not None and slot.outputs is Outputs.EARLIER and not (slot.own_output and source == slot.step):
            self.uses.append(Use(user=slot.step, source=source, path=path, span=ref.span))
        if ref.root != "steps" and not optional:
            self._fallbacks(ref, path)

    def _nothing(self, nothing: Nothing, ref: Ref, path: str) -> None:
        guess = nothing.suggestion
        name = (ref.root, *ref.path)[nothing.part]
        if guess is None and nothing.what:
            guess = self._found.guess(nothing.what, str(name), nothing.among)
        hint = None
        if nothing.code == "unknown_reference" and nothing.what:
            hint = f"declare an input, or write $${{{name}}} to keep the text"
        self._found.add(nothing.code, path, nothing.message, span=ref.parts[nothing.part], suggestion=guess, hint=hint)

    def _fallbacks(self, ref: Ref, path: str) -> None:
        field = ref.path[-1] if ref.path else ""
        for who in self._lookup.lacking(ref):
            message = f"{who}, the fallback of '{ref.root}', has no output '{field}'"
            hint = f"write default({ref.root}…, null), or another fallback"
            self._found.add("unknown_field", path, message, span=ref.parts[-1], hint=hint)

    def _types(self, expression: Expression, slot: Slot, path: str, *, alone: bool) -> None:
        def types_of(ref: Ref) -> Types:
            known = self._lookup.find(ref, slot)
            return types(known.schema, known.whole) if isinstance(known, Known) and not known.undescribed else None

        def report(message: str, span: Span) -> None:
            self._found.add("wrong_type", path, message, span=span)

        look = Look(types_of=types_of, report=report)
        if alone and slot.wants is not Wants.ANYTHING:
            wanted = BOOLEAN if slot.wants is Wants.CONDITION else LIST
            check_types(expression, wanted, f"'{_key(slot.path)}'", look)
        elif not isinstance(expression, Ref):
            types_in(expression, look)

    def _never(self, slot: Slot, compiled: Compiled) -> None:
        """A condition without references has only one answer."""
        if slot.path.endswith("/when") and not references(compiled) and test(compiled, _NOTHING) is False:
            self._found.warn("never_runs", slot.path, "'when' is always false")


class _NoScope:
    """Where nothing is known."""

    def root(self, name: str) -> Found | Absent:  # noqa: ARG002 -- a Scope
        return Absent(why="unknown")

    def step(self, step_id: str) -> None:
        """No step either."""


_NOTHING: Final = _NoScope()


def _key(path: str) -> str:
    return path.rpartition("/")[2]


_CURLY: Final = re.compile(r"\{\{\s*inputs\.([a-z][a-z0-9_]*)\s*\}\}")


def _curly_inputs(value: JsonValue) -> set[str]:
    """Inputs that are written as other languages would, which here is plain text."""
    found: set[str] = set()
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str) and "{{" in item:
            found.update(_CURLY.findall(item))
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            pending += item.values()
    return found
