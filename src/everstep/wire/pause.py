"""Pauses as Pause objects (interfaces, 5.5). The reason is camelCase with the tag `type`; the rest is snake_case.

Every answer is listed with the request that gives it, so a door or a client needs no table of its own.
"""

from typing import Any, Final, TypeAlias

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

from everstep.domain import pauses as p
from everstep.domain.ids import Digest, Instant, PauseId, StepPath, TaskId
from everstep.domain.pauses import GatedCall, Pause, PauseStatus
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.wire.payload import Payload, read, write
from everstep.wire.times import maybe_instant, maybe_text, to_text


class UnresolvableParams(Struct, tag="unresolvableParams", tag_field="type", rename="camel"):
    blocked_step: StepPath
    missing_param: str
    suggested_tool: str | None


class SchemaMismatch(Struct, tag="schemaMismatch", tag_field="type", rename="camel"):
    blocked_step: StepPath
    missing_fields: tuple[str, ...]
    suggested_tool: str | None


class ToolErrorPause(Struct, tag="toolError", tag_field="type", rename="camel"):
    failed_step: StepPath
    error: str
    retryable: bool
    suggested_tool: str | None


class UnresolvedDependency(Struct, tag="unresolvedDependency", tag_field="type", rename="camel"):
    blocked_step: StepPath
    missing_output: str
    producing_step: StepPath
    suggested_tool: str | None


class ApprovalRequired(Struct, tag="approvalRequired", tag_field="type", rename="camel"):
    blocked_step: StepPath
    approval_id: PauseId
    digest: Digest
    suggested_tool: str | None


class InputRequired(Struct, tag="inputRequired", tag_field="type", rename="camel"):
    blocked_step: StepPath
    question: str
    schema: Any  # any JSON: msgspec has no recursive type for it


class UncertainOutcome(Struct, tag="uncertainOutcome", tag_field="type", rename="camel"):
    blocked_step: StepPath
    attempt: int
    idempotency_key: str
    suggested_tool: str | None


class LimitReached(Struct, tag="limitReached", tag_field="type", rename="camel"):
    limit: str
    used: int | float
    max: int | float


class UserRequested(Struct, tag="userRequested", tag_field="type", rename="camel"):
    by: str
    note: str | None


class ResourcePressure(Struct, tag="resourcePressure", tag_field="type", rename="camel"):
    what: str
    level: float


ReasonData: TypeAlias = (
    UnresolvableParams
    | SchemaMismatch
    | ToolErrorPause
    | UnresolvedDependency
    | ApprovalRequired
    | InputRequired
    | UncertainOutcome
    | LimitReached
    | UserRequested
    | ResourcePressure
)

_SPELLING: Final[dict[type[p.Reason], type[ReasonData]]] = {
    p.UnresolvableParams: UnresolvableParams,
    p.SchemaMismatch: SchemaMismatch,
    p.ToolErrorPause: ToolErrorPause,
    p.UnresolvedDependency: UnresolvedDependency,
    p.ApprovalRequired: ApprovalRequired,
    p.InputRequired: InputRequired,
    p.UncertainOutcome: UncertainOutcome,
    p.LimitReached: LimitReached,
    p.UserRequested: UserRequested,
    p.ResourcePressure: ResourcePressure,
}
"""Each reason and its spelling; the fields have the same names."""
_MEANING: Final = {spelling: reason for reason, spelling in _SPELLING.items()}

_OBJECT: Final[JsonObject] = {"type": "object"}
_FIELDS: Final[dict[str, JsonObject]] = {
    "supply_arguments": {"arguments": _OBJECT},
    "retry_with": {"arguments": _OBJECT},
    "supply_output": {"output": {}},
    "happened": {"output": {}},
    "answer": {"value": {}},
    "edit": {"arguments": _OBJECT},
    "reject": {"note": {"type": "string", "minLength": 1}},
    "raise_limit": {"max": {"type": "number"}},
}
"""What an answer carries beside `answer` and `note`."""
_LABELS: Final[dict[str, str]] = {
    "approve": "Approve",
    "edit": "Approve with other arguments",
    "reject": "Reject",
    "supply_arguments": "Supply the arguments",
    "skip": "Skip this step",
    "cancel": "Cancel the task",
    "retry": "Try again",
    "retry_with": "Try again with other arguments",
    "supply_output": "Supply the output",
    "fail": "Let the step fail",
    "run_producer": "Call the producing step again",
    "answer": "Answer",
    "happened": "It happened; supply the output",
    "not_happened": "It did not happen; call again",
    "raise_limit": "Allow more",
    "resume": "Resume",
}
_NAMES_THE_CALL: Final = frozenset({"approve", "edit", "reject"})
"""Answers that say which call they are about."""


class Request(Struct):
    """A request of the HTTP API."""

    method: str
    path: str
    body: dict[str, str]


class AnswerData(Struct):
    """One allowed answer; `schema` says what has to be added to the request's body."""

    answer: str
    label: str
    schema: dict[str, Any] | None
    request: Request


class CallData(Struct):
    """The call that is asked about."""

    tool: str
    tool_version: str
    effect: Effect
    input: Payload
    editable: tuple[str, ...] = ()
    of_items: bool = False
    policy: str = ""


class PauseData(Struct, kw_only=True):
    """The Pause object; what is not known is null."""

    id: PauseId
    task: TaskId
    step: StepPath | None
    status: PauseStatus
    title: str
    why: str
    reason: ReasonData
    call: CallData | None = None
    show: tuple[Any, ...] = ()  # any JSON: msgspec has no recursive type for it
    guidance: str | None = None
    may_answer: tuple[str, ...] = p.MAY_ANSWER["anyone"]
    answers: tuple[AnswerData, ...] = ()
    opened_at: str
    expires_at: str | None = None
    on_timeout: str | None = None
    answered: None = None
    grant: None = None


_encode: Final = Encoder().encode
_decode: Final = Decoder(PauseData).decode


def write_reason(reason: p.Reason) -> ReasonData:
    """Why a task stands still, as it is spelled at every door."""
    spelling = _SPELLING[type(reason)]
    return spelling(*[getattr(reason, name) for name in spelling.__struct_fields__])


def write_pause(pause: Pause, task: TaskId, opened_at: Instant, status: PauseStatus = PauseStatus.OPEN) -> PauseData:
    """The Pause object of a question."""
    return PauseData(
        id=pause.id,
        task=task,
        step=pause.step,
        status=status,
        title=pause.title,
        why=pause.why,
        reason=write_reason(pause.reason),
        opened_at=to_text(opened_at),
        answers=tuple(_answer(pause, answer) for answer in pause.answers),
        guidance=pause.guidance,
        call=_write_call(pause.call),
        show=pause.show,
        may_answer=pause.may_answer,
        expires_at=maybe_text(pause.expires_at),
        on_timeout=pause.on_timeout,
    )


def read_pause(data: PauseData) -> Pause:
    """The question again."""
    meaning = _MEANING[type(data.reason)]
    return Pause(
        id=data.id,
        step=data.step,
        reason=meaning(**{name: getattr(data.reason, name) for name in data.reason.__struct_fields__}),
        title=data.title,
        why=data.why,
        guidance=data.guidance,
        call=_read_call(data.call),
        show=data.show,
        may_answer=data.may_answer,
        expires_at=maybe_instant(data.expires_at),
        on_timeout=data.on_timeout,
    )


def _write_call(call: GatedCall | None) -> CallData | None:
    if call is None:
        return None
    return CallData(
        call.tool, call.tool_version, call.effect, write(call.input), call.editable, call.of_items, call.policy
    )


def _read_call(data: CallData | None) -> GatedCall | None:
    if data is None:
        return None
    return GatedCall(
        tool=data.tool,
        tool_version=data.tool_version,
        effect=data.effect,
        input=read(data.input),
        editable=data.editable,
        of_items=data.of_items,
        policy=data.policy,
    )


def encode_pause(pause: Pause, task: TaskId, opened_at: Instant) -> bytes:
    """The Pause object as it is kept beside the journal."""
    return _encode(write_pause(pause, task, opened_at))


def decode_pause(encoded: str | bytes | Raw) -> Pause:
    """The question again."""
    return read_pause(_decode(encoded))


def _answer(pause: Pause, answer: str) -> AnswerData:
    body = {"answer": answer}
    if pause.call is not None and answer in _NAMES_THE_CALL:
        body["digest"] = pause.call.input.digest
    return AnswerData(
        answer=answer,
        label=_LABELS[answer],
        schema=_schema(pause, answer),
        request=Request("POST", f"/v1/inbox/{pause.id}/answer", body),
    )


def _schema(pause: Pause, answer: str) -> JsonObject | None:
    fields = _FIELDS.get(answer)
    if fields is None:
        return None
    if isinstance(pause.reason, p.InputRequired) and answer == "answer" and isinstance(pause.reason.schema, dict):
        fields = {"value": pause.reason.schema}
    if pause.call is not None and answer == "edit":
        editable: JsonObject = {name: {} for name in pause.call.editable}
        fields = {"arguments": {"type": "object", "properties": editable, "additionalProperties": False}}
    return {"type": "object", "properties": fields, "required": [*fields]}
