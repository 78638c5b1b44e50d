"""THE table of a plan's keys. Shape check, normal form, key order of formatted files and the editor's schema all
come from these rows (plan-and-python, sections 3 and 4). Order matters: it is the order of `plan fmt`.
"""

from typing import Final

from everstep.domain.check_names import STEPS_MAX
from everstep.domain.ids import Millis
from everstep.domain.plan import (
    ApproveSpec,
    DefaultsSpec,
    Effect,
    FallbackSpec,
    InputSpec,
    LimitsSpec,
    OnError,
    OnUncertain,
    PlanSpec,
    ResourceSpec,
    RetrySpec,
    StepSpec,
    UndoSpec,
)
from everstep.domain.record import record
from everstep.domain.suggest import ON_ERROR, PLAN_KEYS, STEP_KEYS, TYPES, suggest
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.shape import (
    REFUSED,
    Anything,
    Bound,
    Duration,
    Fields,
    Flag,
    Number,
    Object,
    OneOf,
    Place,
    Refused,
    Size,
    Text,
    Whole,
    Word,
)
from everstep.wire.tables import Key, ListOf, Short, Table

FORMAT: Final = 1
GUIDANCE_CHARS_MAX: Final = 4_000
TIMEOUT_MS_MAX: Final = Millis(86_400_000)
INPUT_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "secret")
RETRY_ONLY: Final = ("timeout", "network", "rate_limited", "server_error", "crash")

_NAMES: Final = ListOf(item=Word())
_CONDITION: Final = Bound(type=bool, wanted="true, false or ${…}", schema_type="boolean")
_LIST: Final = Bound(type=list, wanted="a list or ${…}", schema_type="array")
_ON_ERROR: Final = OneOf(options=tuple(OnError), make=OnError, synonyms=ON_ERROR)
_ON_UNCERTAIN: Final = OneOf(options=tuple(OnUncertain), make=OnUncertain)

# --- parts ----------------------------------------------------------------------------------------------------------

_RETRY_KEYS: Final = (
    Key(name="times", kind=Whole(least=0, most=20), field="times", doc="retries of transient failures"),
    Key(name="delay", kind=Duration(), field="delay_ms", doc="wait before the first retry"),
    Key(name="factor", kind=Number(least=1), field="factor", doc="how much longer each wait is"),
    Key(name="max_delay", kind=Duration(), field="max_delay_ms", doc="longest wait"),
    Key(name="within", kind=Duration(), field="within_ms", doc="deadline over all attempts and waits"),
    Key(name="only", kind=ListOf(item=OneOf(options=RETRY_ONLY)), field="only", doc="which failures are retried"),
)


def _short_retry(value: int, place: Place) -> RetrySpec | Refused:
    times = Whole(least=0, most=20).read(value, place)
    return REFUSED if isinstance(times, Refused) else RetrySpec(times=times)


RETRY: Final = Short(
    full=Table(keys=_RETRY_KEYS, make=lambda fields, _: RetrySpec(**fields) if fields else None),
    types=(int,),
    expand=_short_retry,
    short=Whole(least=0, most=20).schema(),
)


_ATTEMPT_LIMITS: Final = (
    Key(name="memory", kind=Size(), field="memory_bytes", doc="memory of one attempt"),
    Key(name="cpu_time", kind=Duration(), field="cpu_time_ms", doc="CPU time of one attempt"),
    Key(name="output", kind=Size(), field="output_bytes", doc="output of one attempt"),
    Key(name="disk", kind=Size(), field="disk_bytes", doc="disk space of one attempt"),
    Key(name="cost", kind=Number(least=0), field="cost", doc="cost of one attempt"),
)
_TASK_LIMITS: Final = (
    Key(name="wall_time", kind=Duration(), field="wall_time_ms", doc="time of the whole task"),
    Key(name="cpu_time", kind=Duration(), field="cpu_time_ms", doc="CPU time of the whole task"),
    Key(name="memory", kind=Size(), field="memory_bytes", doc="memory of all attempts together"),
    Key(name="output", kind=Size(), field="output_bytes", doc="output of the whole task"),
    Key(name="disk", kind=Size(), field="disk_bytes", doc="disk space of the whole task"),
    Key(name="calls", kind=Whole(least=0, most=10_000_000), field="calls", doc="tool calls of the whole task"),
    Key(name="cost", kind=Number(least=0), field="cost", doc="cost of the whole task"),
    Key(name="on_reached", kind=OneOf(options=("pause", "fail")), field="on_reached", doc="what a limit does"),
)
STEP_LIMITS: Final = Table(keys=_ATTEMPT_LIMITS, make=lambda fields, _: LimitsSpec(**fields) if fields else None)
PLAN_LIMITS: Final = Table(keys=_TASK_LIMITS, make=lambda fields, _: LimitsSpec(**fields))


@record
class TrueOrList:
    """`true`, or some names."""

    def read(self, value: JsonValue, place: Place) -> tuple[str, ...] | bool | Refused:
        if value is True:
            return True
        return place.wrong("true or a list", value) if value is False else _NAMES.read(value, place)

    def write(self, value: tuple[str, ...] | bool) -> JsonValue:  # noqa: FBT001 -- the plan's own
        return True if value is True else _NAMES.write(value or ())

    def schema(self) -> JsonObject:
        return {"anyOf": [{"const": True}, _NAMES.schema()]}


_APPROVE_KEYS: Final = (
    Key(name="title", kind=Text(), field="title", required=True, doc="the question"),
    Key(name="show", kind=Anything(), field="show", doc="values to show; the arguments if left out"),
    Key(
        name="edit",
        kind=TrueOrList(),
        field="edit",
        unset=(),
        doc="arguments the approver may change, or true",
    ),
    Key(
        name="by",
        kind=OneOf(options=("human", "llm", "anyone")),
        field="by",
        unset="human",
        doc="who may approve",
    ),
    Key(name="within", kind=Duration(), field="within_ms", doc="when the question expires"),
    Key(
        name="on_timeout",
        kind=OneOf(options=("reject", "wait", "approve")),
        field="on_timeout",
        doc="what happens then",
    ),
    Key(
        name="on_reject",
        kind=OneOf(options=("fail", "skip", "pause"), synonyms={"continue": "skip"}),
        field="on_reject",
        unset="fail",
        doc="what a no means",
    ),
)


def _short_approve(value: str | bool, place: Place) -> ApproveSpec | bool | Refused:  # noqa: FBT001 -- the plan's own
    """`true` asks "Run <tool>?": the step that holds it knows the tool."""
    if isinstance(value, str):
        return ApproveSpec(title=value)
    return value or place.refuse("bad_value", f"{place.label} is true, a title or a map; leave it out to ask nobody")


APPROVE: Final = Short(
    full=Table(keys=_APPROVE_KEYS, make=lambda fields, _: ApproveSpec(**fields)),
    types=(bool, str),
    expand=_short_approve,
    short={"anyOf": [{"const": True}, {"type": "string"}]},
)


def _named_approval(fields: Fields) -> None:
    if fields.get("approve") is True:
        fields["approve"] = ApproveSpec(title=f"Run {fields.get('tool') or 'resource.read'}?")


_CALL_KEYS: Final = (
    Key(name="tool", kind=Word(), field="tool", doc="which tool is called"),
    Key(name="with", kind=Object(), field="arguments", unset={}, doc="its arguments; bindings allowed"),
    Key(name="timeout", kind=Duration(most_ms=TIMEOUT_MS_MAX), field="timeout_ms", doc="one attempt"),
    Key(name="retry", kind=RETRY, field="retry", doc="how often and when it is tried again"),
)

# --- fallback, undo, resources --------------------------------------------------------------------------------------


def _make_fallback(fields: Fields, place: Place) -> FallbackSpec | Refused:
    if "value" in fields:
        others = [key.name for key in _CALL_KEYS if key.field in fields]
        if others:
            return place.refuse("key_conflict", f"'value' stands alone, without '{others[0]}'")
        return FallbackSpec(value=fields["value"])
    if "tool" not in fields:
        return place.refuse("missing_key", f"{place.label} has neither 'tool' nor 'value'")
    return FallbackSpec(**{"arguments": {}, **fields})


@record
class Fallback:
    """Another tool, or a value; `null` is a value."""

    table: Table

    def read(self, value: JsonValue, place: Place) -> FallbackSpec | Refused:
        read: FallbackSpec | Refused = self.table.read(value, place)
        return read

    def write(self, value: FallbackSpec) -> JsonValue:
        return {"value": value.value} if value.tool is None else self.table.write(value)

    def schema(self) -> JsonObject:
        return self.table.schema()


_VALUE: Final = Key(name="value", kind=Anything(), field="value", takes_null=True, doc="a literal value instead")
FALLBACK: Final = Fallback(table=Table(keys=(*_CALL_KEYS, _VALUE), make=_make_fallback, synonyms=STEP_KEYS))


def _make_undo(fields: Fields, place: Place) -> UndoSpec:  # noqa: ARG001 -- every maker is told its place
    _named_approval(fields)
    return UndoSpec(**{"arguments": {}, **fields})


_UNDO_TOOL: Final = Key(name="tool", kind=Word(), field="tool", required=True, doc="which tool takes it back")
_APPROVE_KEY: Final = Key(name="approve", kind=APPROVE, field="approve", doc="ask first: true, a title or a map")
UNDO: Final = Table(keys=(_UNDO_TOOL, *_CALL_KEYS[1:], _APPROVE_KEY), make=_make_undo, synonyms=STEP_KEYS)

RESOURCE: Final = Short(
    full=Table(
        keys=(
            Key(name="uri", kind=Text(), field="uri", required=True, doc="scheme://…, {name} for variables"),
            Key(name="vars", kind=Object(), field="vars", doc="values of the variables; bindings allowed"),
        ),
        make=lambda fields, _: ResourceSpec(**fields),
    ),
    types=(str,),
    expand=lambda value, _: ResourceSpec(uri=value),
    short={"type": "string"},
)

# --- inputs ---------------------------------------------------------------------------------------------------------


@record
class Inputs:
    """Name → type word or JSON Schema."""

    def read(self, value: JsonValue, place: Place) -> tuple[InputSpec, ...] | Refused:
        if not isinstance(value, dict):
            return place.wrong("a map", value)
        noted = len(place.notes)
        inputs = tuple(
            InputSpec(name=name, schema=_input_schema(schema, place.at(name, f"input '{name}'")))
            for name, schema in value.items()
        )
        return inputs if len(place.notes) == noted else REFUSED

    def write(self, value: tuple[InputSpec, ...]) -> JsonValue:
        return {declared.name: declared.schema for declared in value}

    def schema(self) -> JsonObject:
        word: JsonObject = {"type": "string", "enum": [*INPUT_TYPES]}
        full: JsonObject = {"type": "object", "properties": {"type": word}, "required": ["type"]}
        return {"type": "object", "additionalProperties": {"anyOf": [word, full]}}


def _input_schema(value: JsonValue, place: Place) -> JsonObject:
    """The schema of one input; after a refusal what is returned is not used."""
    if not isinstance(value, str | dict):
        place.wrong("a type word or a schema", value)
        return {}
    word = value.get("type") if isinstance(value, dict) else value
    if word is None:
        place.refuse("missing_key", f"{place.label} has no 'type'")
    elif word not in INPUT_TYPES:
        at = place.at("type") if isinstance(value, dict) else place
        guess = suggest(str(word), INPUT_TYPES, TYPES)
        at.refuse("bad_value", f"'{word}' is not a type, write {' '.join(INPUT_TYPES)}", suggestion=guess)
    return value if isinstance(value, dict) else {"type": value}


# --- steps and plans ------------------------------------------------------------------------------------------------


def _make_step(fields: Fields, place: Place) -> StepSpec:
    if "tool" not in fields and not fields.get("resources"):
        place.refuse("missing_key", f"{place.label} has neither 'tool' nor 'resources'")
    return _readable_step(fields)


def _readable_step(fields: Fields) -> StepSpec:
    """Every item of `steps` becomes a step, so that the others keep their places."""
    _named_approval(fields)
    name = fields.get("id", "")
    return StepSpec(**{"id": name, "bind": name, "arguments": {}, **fields})


_STEP_ROWS: Final = (
    Key(name="id", kind=Word(), field="id", required=True, doc="journal key of the step: letters, digits, _"),
    Key(name="bind", kind=Word(), field="bind", same_as="id", doc="name of the output in ${…}, instead of the id"),
    *_CALL_KEYS[:2],
    Key(name="title", kind=Text(), field="title", doc="for people; bindings allowed"),
    Key(name="needs", kind=_NAMES, field="needs", doc="wait for exactly these; [] starts at once"),
    Key(name="when", kind=_CONDITION, field="when", unset=True, takes_null=True, doc="false skips the step"),
    Key(name="for_each", kind=_LIST, field="for_each", doc="once per item, as ${item} and ${index}"),
    Key(name="parallel", kind=Whole(least=1, most=64), field="parallel", doc="items at the same time"),
    *_CALL_KEYS[2:],
    Key(name="retryable", kind=Flag(), field="retryable", unset=False, doc="a hint for whoever takes over"),
    Key(name="on_error", kind=_ON_ERROR, field="on_error", doc="what its failure means for the task"),
    Key(name="fallback", kind=ListOf(item=FALLBACK), field="fallback", unset=(), doc="what to try instead"),
    _APPROVE_KEY,
    Key(name="on_uncertain", kind=_ON_UNCERTAIN, field="on_uncertain", doc="when nobody knows whether it happened"),
    Key(name="effect", kind=OneOf(options=tuple(Effect), make=Effect), field="effect", doc="a more careful class"),
    Key(name="undo", kind=UNDO, field="undo", doc="how to take it back"),
    Key(name="guidance", kind=Text(chars_max=GUIDANCE_CHARS_MAX), field="guidance", doc="for whoever takes over"),
    Key(name="resources", kind=ListOf(item=RESOURCE), field="resources", unset=(), doc="MCP resources it reads"),
    Key(name="pool", kind=Word(), field="pool", doc="pool from the configuration"),
    Key(name="breaker", kind=Word(), field="breaker", doc="name of its breaker"),
    Key(name="limits", kind=STEP_LIMITS, field="limits", doc="bounds of one attempt"),
)
STEP: Final = Table(keys=_STEP_ROWS, make=_make_step, synonyms=STEP_KEYS, stand_in=_readable_step)
_STEPS: Final = ListOf(item=STEP, label="step", most=STEPS_MAX)

_DEFAULTS: Final = Table(
    keys=(
        *_CALL_KEYS[2:],
        Key(name="on_error", kind=_ON_ERROR, field="on_error", doc="for steps that do not say"),
        Key(name="on_uncertain", kind=_ON_UNCERTAIN, field="on_uncertain", doc="for steps that do not say"),
        Key(name="limits", kind=STEP_LIMITS, field="limits", doc="for steps that do not say"),
    ),
    make=lambda fields, _: DefaultsSpec(**fields),
)
PLAN: Final = Table(
    keys=(
        Key(name="format", kind=Whole(least=FORMAT, most=FORMAT), field=None, doc="version of this format"),
        Key(name="name", kind=Word(), field="name", required=True, doc="name of the plan: letters, digits, -"),
        Key(name="title", kind=Text(), field="title", doc="for people; may bind inputs and task"),
        Key(name="description", kind=Text(), field="description", doc="what it is for"),
        Key(name="guidance", kind=Text(chars_max=GUIDANCE_CHARS_MAX), field="guidance", doc="for whoever takes over"),
        Key(name="inputs", kind=Inputs(), field="inputs", unset=(), doc="name → type word or JSON Schema"),
        Key(name="defaults", kind=_DEFAULTS, field="defaults", unset=DefaultsSpec(), doc="for all steps"),
        Key(name="limits", kind=PLAN_LIMITS, field="limits", unset=LimitsSpec(), doc="bounds of the whole task"),
        Key(name="parallel", kind=Whole(least=1, most=64), field="parallel", doc="steps at the same time"),
        Key(name="done_when", kind=_CONDITION, field="done_when", doc="the goal: skips what is then optional"),
        Key(name="steps", kind=_STEPS, field="steps", required=True, doc="the steps, in order"),
        Key(
            name="finally",
            kind=_STEPS,
            field="finally_steps",
            unset=(),
            doc="steps after the others, however they ended",
        ),
        Key(name="outputs", kind=Object(), field="outputs", unset={}, doc="name → value; bindings allowed"),
    ),
    make=lambda fields, _: PlanSpec(**{"outputs": {}, **fields}),
    synonyms=PLAN_KEYS,
    stand_in=lambda fields: PlanSpec(**{"name": "", "outputs": {}, **fields}),
)
