"""What a reference in a plan stands for, before anything has run: a schema, or why there is nothing."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from everstep.domain.bindings import Compiled, Whole, compile_value
from everstep.domain.check_order import path_of
from everstep.domain.described import ANYTHING, NoField, field
from everstep.domain.expression import Ref
from everstep.domain.facts import ToolFacts
from everstep.domain.plan import FallbackSpec, PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.slots import ROOTS, Outputs, Slot
from everstep.domain.values import JsonObject, JsonValue


@record
class Known:
    """Its schema, inside the document it comes from. `undescribed`: the tool that does not say."""

    schema: JsonObject
    whole: JsonObject
    undescribed: str | None = None


@record
class Nothing:
    """There is no such thing. `part` counts the parts of the reference from its root."""

    code: str
    message: str
    part: int
    what: str = ""
    """What kind of name was looked for, and among which."""
    among: Iterable[str] = ()
    suggestion: str | None = None


RESOURCE_TOOL: Final = "resource.read"
"""What a step without a tool of its own is."""

_TEXT: Final[JsonObject] = {"type": "string"}
STEP_FACTS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "status": _TEXT,
        "error": {"type": ["object", "null"]},
        "attempts": {"type": "integer"},
        "duration": {"type": ["number", "null"]},
        "tool_used": {"type": ["string", "null"]},
        "skipped_reason": {"type": ["string", "null"]},
        "counts": {"type": ["object", "null"]},
        "approval": {"type": ["object", "null"]},
    },
}
_TASK_FACTS: Final[JsonObject] = {
    "type": "object",
    "properties": {"id": _TEXT, "plan": _TEXT, "created_at": _TEXT, "status": _TEXT},
}
_ELSEWHERE: Final = {
    "item": "'item' exists only in a step with 'for_each'",
    "index": "'index' exists only in a step with 'for_each'",
    "error": "'error' exists only in 'fallback' and 'finally'",
    "steps": "the title of a plan knows only 'inputs' and 'task'",
    "secrets": "a secret goes only into arguments that take one",
}


class Lookup:
    """A plan and its tools, as references see them."""

    def __init__(self, plan: PlanSpec, tools: Mapping[str, ToolFacts]) -> None:
        self.plan = plan
        self.steps = (*plan.steps, *plan.finally_steps)
        self.binds = {step.bind: at for at, step in reversed([*enumerate(self.steps)])}
        self.ids = {step.id: at for at, step in reversed([*enumerate(self.steps)])}
        self._tools = tools
        self._secret_inputs = [(item.name,) for item in plan.inputs if item.schema.get("type") == "secret"]
        self._compiled: dict[str, Compiled] = {}

    @cached_property
    def inputs(self) -> JsonObject:
        """The schema of all inputs together; a secret is the name of one."""
        properties: JsonObject = {declared.name: input_schema(declared.schema) for declared in self.plan.inputs}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def compiled(self, path: str, value: JsonValue) -> Compiled:
        """The value at a path of the plan, parsed once however many rules look at it."""
        if path not in self._compiled:
            self._compiled[path] = compile_value(value)
        return self._compiled[path]

    def source(self, ref: Ref) -> int | None:
        """The step a reference reads from, if it reads from one."""
        if ref.root == "steps":
            return self.ids.get(str(ref.path[0])) if ref.path else None
        return None if ref.root in ROOTS else self.binds.get(ref.root)

    def is_secret(self, ref: Ref) -> bool:
        """Whether a reference leads to a secret."""
        return ref.root == "secrets" or (ref.root == "inputs" and ref.path[:1] in self._secret_inputs)

    def find(self, ref: Ref, slot: Slot) -> Known | Nothing:
        """What a reference in this place stands for."""
        if ref.root in ROOTS:
            return self._root(ref, slot)
        at = self.binds.get(ref.root)
        if at is None:
            return self._unknown(ref, slot)
        if slot.outputs is Outputs.NONE:
            return Nothing(code="unknown_reference", message=_ELSEWHERE["steps"], part=0)
        own = slot.own_output and slot.outputs is Outputs.ANY and at == slot.step  # an undo, which sees one item
        return self._output(ref, self.steps[at], each=own)

    def lacking(self, ref: Ref) -> Iterable[str]:
        """Fallbacks of the step that lack the field: whoever stands in must give what is used later."""
        step = self.steps[self.binds[ref.root]]
        for other in step.fallback:
            path = ref.path[1:] if step.for_each is not None else ref.path
            if path and self._lacks(other, path):
                yield f"'{other.tool}'" if other.tool else "the value"

    def _lacks(self, other: FallbackSpec, path: tuple[str | int, ...]) -> bool:
        if other.tool is None:
            return compile_value(other.value).constant and not _has(other.value, path)
        facts = self._tools.get(other.tool)
        if facts is None or facts.output_schema is None:
            return False
        found = _follow(Known(schema=facts.output_schema, whole=facts.output_schema), path, 0, other.tool)
        return isinstance(found, Nothing)

    def _root(self, ref: Ref, slot: Slot) -> Known | Nothing:
        if ref.root not in slot.names:
            return Nothing(code="unknown_reference", message=_ELSEWHERE[ref.root], part=0)
        match ref.root:
            case "inputs":
                return self._input(ref)
            case "steps":
                return self._step_fact(ref)
            case "task":
                return _follow(Known(schema=_TASK_FACTS, whole=_TASK_FACTS), ref.path, 1, "task")
            case "item":
                return self._item(ref, slot)
            case "index":
                return Known(schema={"type": "integer"}, whole=ANYTHING)
            case "secrets":
                return Known(schema=_TEXT, whole=ANYTHING)
            case _:
                return Known(schema=ANYTHING, whole=ANYTHING)

    def _input(self, ref: Ref) -> Known | Nothing:
        whole = self.inputs
        names = [declared.name for declared in self.plan.inputs]
        if ref.path and ref.path[0] not in names:
            message = f"no input '{ref.path[0]}'"
            return Nothing(code="unknown_input", message=message, part=1, what="input", among=names)
        return _follow(Known(schema=whole, whole=whole), ref.path, 1, "this input")

    def _step_fact(self, ref: Ref) -> Known | Nothing:
        if not ref.path:
            return Nothing(code="unknown_reference", message="write steps.<id>", part=0)
        if ref.path[0] not in self.ids:
            message = f"no step '{ref.path[0]}'"
            return Nothing(code="unknown_step", message=message, part=1, what="step", among=self.ids)
        return _follow(Known(schema=STEP_FACTS, whole=STEP_FACTS), ref.path[1:], 2, f"steps.{ref.path[0]}")

    def _item(self, ref: Ref, slot: Slot) -> Known | Nothing:
        """An item of what `for_each` goes through, if that is a plain reference."""
        assert slot.step is not None, "only steps have items"
        path = path_of(slot.step, self.plan)
        shape = self.compiled(f"{path}/for_each", self.steps[slot.step].for_each).shape
        if not isinstance(shape, Whole) or not isinstance(shape.expression, Ref) or shape.expression.root == "item":
            return Known(schema=ANYTHING, whole=ANYTHING)
        items = self.find(shape.expression, slot)
        if isinstance(items, Nothing):
            return Known(schema=ANYTHING, whole=ANYTHING)
        return _follow(items, (0, *ref.path), 0, "an item")

    def _output(self, ref: Ref, step: StepSpec, *, each: bool) -> Known | Nothing:
        tool = step.tool or RESOURCE_TOOL
        facts = self._tools.get(tool)
        if facts is None:
            return Known(schema=ANYTHING, whole=ANYTHING)
        schema = facts.output_schema
        known = Known(schema=schema or ANYTHING, whole=schema or ANYTHING, undescribed=tool if schema is None else None)
        if step.for_each is None or each:
            return _follow(known, ref.path, 1, tool)
        if ref.path and not isinstance(ref.path[0], int):
            message = f"'{ref.root}' is a list, one output per item; write {ref.root}[0].{ref.path[0]}"
            return Nothing(code="unknown_field", message=message, part=1)
        listed: JsonObject = {"type": "array"}
        return _follow(known, ref.path[1:], 2, tool) if ref.path else Known(schema=listed, whole=listed)

    def _unknown(self, ref: Ref, slot: Slot) -> Nothing:
        name = ref.root
        message = f"nothing here is called '{name}'"
        names = sorted(slot.names) if slot.outputs is Outputs.NONE else [*self.binds, *sorted(slot.names)]
        guess = None
        if name in self.ids:
            guess = self.steps[self.ids[name]].bind
        elif any(declared.name == name for declared in self.plan.inputs):
            guess = f"inputs.{name}"
        return Nothing(
            code="unknown_reference", message=message, part=0, what="reference", among=names, suggestion=guess
        )


def input_schema(schema: JsonObject) -> JsonObject:
    """The JSON Schema of an input's value: of a secret that is its name."""
    return {**schema, "type": "string"} if schema.get("type") == "secret" else schema


def _follow(known: Known, path: tuple[str | int, ...], part: int, owner: str) -> Known | Nothing:
    if path and known.undescribed is not None:
        return known
    schema = known.schema
    for number, key in enumerate(path):
        found = field(schema, key, known.whole)
        if isinstance(found, NoField):
            name = f"'{key}'" if isinstance(key, str) else f"item {key}"
            message = f"'{owner}' has no output {name}" if number == 0 and part == 1 else f"there is no {name}"
            return Nothing(
                code="unknown_field", message=message, part=part + number, what=f"field of {owner}", among=found.names
            )
        schema = found.schema
    return Known(schema=schema, whole=known.whole)


def _has(value: JsonValue, path: tuple[str | int, ...]) -> bool:
    """Whether a literal value has what a path leads to."""
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[str(key)]
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return False
    return True
