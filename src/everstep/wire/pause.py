"""Pauses as Pause objects (interfaces, 5.5). The reason is camelCase with the tag `type`; the rest is snake_case.

Every answer is listed with the request that gives it, so a door or a client needs no table of its own.
"""

from typing import Any, Final, TypeAlias

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

from everstep.domain import pauses as p
from everstep.domain.ids import Digest, Instant, PauseId, StepPath, TaskId
from everstep.domain.pauses import Pause, PauseStatus
from everstep.domain.values import JsonObject
from everstep.wire.times import to_text


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
    used: float
    max: float


class UserRequested(Struct, tag="userRequested", tag_field="type", rename="camel"):
    by: str
    note: str | None


ReasonData: TypeAlias = (
    UnresolvableParams
    | SchemaMismatch
    | ToolErrorPause
    | UnresolvedDependency
    | InputRequired
    | UncertainOutcome
    | LimitReached
    | UserRequested
)

_SPELLING: Final[dict[type[p.Reason], type[ReasonData]]] = {
    p.UnresolvableParams: UnresolvableParams,
    p.SchemaMismatch: SchemaMismatch,
    p.ToolErrorPause: ToolErrorPause,
    p.UnresolvedDependency: UnresolvedDependency,
    p.InputRequired: InputRequired,
    p.UncertainOutcome: UncertainOutcome,
    p.LimitReached: LimitReached,
    p.UserRequested: UserRequested,
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
    "raise_limit": {"max": {"type": "number"}},
}
"""What an answer carries beside `answer` and `note`."""
_LABELS: Final[dict[str, str]] = {
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
MAY_ANSWER: Final = ("human", "llm", "service")
"""Who may answer a pause that is no approval."""


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


class PauseData(Struct, kw_only=True):
    """The Pause object; what is not known is null."""

    id: PauseId
    task: TaskId
    step: StepPath | None
    status: PauseStatus
    title: str
    why: str
    reason: ReasonData
    digest: Digest | None = None
    call: None = None
    show: tuple[str, ...] = ()
    guidance: str | None = None
    may_answer: tuple[str, ...] = MAY_ANSWER
    answers: tuple[AnswerData, ...] = ()
    opened_at: str
    expires_at: str | None = None
    on_timeout: str | None = None
    answered: None = None
    grant: None = None


_encode: Final = Encoder().encode
_decode: Final = Decoder(PauseData).decode


def write_pause(pause: Pause, task: TaskId, opened_at: Instant, status: PauseStatus = PauseStatus.OPEN) -> PauseData:
    """The Pause object of a question."""
    spelling = _SPELLING[type(pause.reason)]
    reason = spelling(*[getattr(pause.reason, name) for name in spelling.__struct_fields__])
    return PauseData(
        id=pause.id,
        task=task,
        step=pause.step,
        status=status,
        title=pause.title,
        why=pause.why,
        reason=reason,
        opened_at=to_text(opened_at),
        answers=tuple(_answer(pause, answer) for answer in p.ANSWERS[pause.type]),
        guidance=pause.guidance,
        digest=pause.digest,
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
        digest=data.digest,
    )


def encode_pause(pause: Pause, task: TaskId, opened_at: Instant) -> bytes:
    """The Pause object as it is kept beside the journal."""
    return _encode(write_pause(pause, task, opened_at))


def decode_pause(encoded: str | bytes | Raw) -> Pause:
    """The question again."""
    return read_pause(_decode(encoded))


def _answer(pause: Pause, answer: str) -> AnswerData:
    return AnswerData(
        answer=answer,
        label=_LABELS[answer],
        schema=_schema(pause, answer),
        request=Request("POST", f"/v1/inbox/{pause.id}/answer", {"answer": answer}),
    )


def _schema(pause: Pause, answer: str) -> JsonObject | None:
    fields = _FIELDS.get(answer)
    if fields is None:
        return None
    if isinstance(pause.reason, p.InputRequired) and answer == "answer" and isinstance(pause.reason.schema, dict):
        fields = {"value": pause.reason.schema}
    return {"type": "object", "properties": fields, "required": [*fields]}
