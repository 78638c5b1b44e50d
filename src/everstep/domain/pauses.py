"""Why a task stands still, and what may be answered. One typed value for every door.

Field names are snake_case here and camelCase on the wire; the wire also adds the tag `type`.
"""

from enum import StrEnum
from typing import Final, TypeAlias

from everstep.domain.ids import Digest, Instant, PauseId, StepPath
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.values import JsonValue, Sealed


class PauseType(StrEnum):
    """The tag of a pause reason."""

    UNRESOLVABLE_PARAMS = "unresolvableParams"
    SCHEMA_MISMATCH = "schemaMismatch"
    TOOL_ERROR = "toolError"
    UNRESOLVED_DEPENDENCY = "unresolvedDependency"
    APPROVAL_REQUIRED = "approvalRequired"
    INPUT_REQUIRED = "inputRequired"
    UNCERTAIN_OUTCOME = "uncertainOutcome"
    LIMIT_REACHED = "limitReached"
    USER_REQUESTED = "userRequested"
    RESOURCE_PRESSURE = "resourcePressure"


class PauseStatus(StrEnum):
    """Where a pause stands."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


@record
class UnresolvableParams:
    """An argument's binding has no value, although its producer completed."""

    blocked_step: StepPath
    missing_param: str
    suggested_tool: str | None


@record
class SchemaMismatch:
    """The resolved arguments lack required fields."""

    blocked_step: StepPath
    missing_fields: tuple[str, ...]
    suggested_tool: str | None


@record
class ToolErrorPause:
    """The tool failed and the plan says: hand over."""

    failed_step: StepPath
    error: str
    retryable: bool
    suggested_tool: str | None


@record
class UnresolvedDependency:
    """A producer failed, was skipped by an answer, or is uncertain."""

    blocked_step: StepPath
    missing_output: str
    producing_step: StepPath
    suggested_tool: str | None


@record
class ApprovalRequired:
    """The call is ready, and somebody must allow exactly this one."""

    blocked_step: StepPath
    approval_id: PauseId
    digest: Digest
    suggested_tool: str | None


@record
class InputRequired:
    """The task asks someone a question."""

    blocked_step: StepPath
    question: str
    schema: JsonValue


@record
class UncertainOutcome:
    """A call was interrupted and nobody knows whether it happened."""

    blocked_step: StepPath
    attempt: int
    idempotency_key: str
    suggested_tool: str | None


@record
class LimitReached:
    """The task has used up what it was given; times in seconds, sizes in bytes."""

    limit: str
    used: int | float
    max: int | float


@record
class UserRequested:
    """Someone asked for the pause."""

    by: str
    note: str | None


@record
class ResourcePressure:
    """Too little is left of memory or disk; `level` is the share in use. It goes on by itself."""

    what: str
    level: float


Reason: TypeAlias = (
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

TYPE_OF: Final[dict[type, PauseType]] = {
    UnresolvableParams: PauseType.UNRESOLVABLE_PARAMS,
    SchemaMismatch: PauseType.SCHEMA_MISMATCH,
    ToolErrorPause: PauseType.TOOL_ERROR,
    UnresolvedDependency: PauseType.UNRESOLVED_DEPENDENCY,
    ApprovalRequired: PauseType.APPROVAL_REQUIRED,
    InputRequired: PauseType.INPUT_REQUIRED,
    UncertainOutcome: PauseType.UNCERTAIN_OUTCOME,
    LimitReached: PauseType.LIMIT_REACHED,
    UserRequested: PauseType.USER_REQUESTED,
    ResourcePressure: PauseType.RESOURCE_PRESSURE,
}

ANSWERS: Final[dict[PauseType, tuple[str, ...]]] = {
    PauseType.UNRESOLVABLE_PARAMS: ("supply_arguments", "skip", "cancel"),
    PauseType.SCHEMA_MISMATCH: ("supply_arguments", "skip", "cancel"),
    PauseType.TOOL_ERROR: ("retry", "retry_with", "supply_output", "skip", "fail", "cancel"),
    PauseType.UNRESOLVED_DEPENDENCY: ("run_producer", "supply_output", "skip", "cancel"),
    PauseType.APPROVAL_REQUIRED: ("approve", "edit", "reject", "answer"),
    PauseType.INPUT_REQUIRED: ("answer", "skip", "cancel"),
    PauseType.UNCERTAIN_OUTCOME: ("happened", "not_happened", "fail", "skip"),
    PauseType.LIMIT_REACHED: ("raise_limit", "cancel"),
    PauseType.USER_REQUESTED: ("resume", "cancel"),
    PauseType.RESOURCE_PRESSURE: ("resume", "cancel"),
}
"""What may be answered to each, in the order in which it is offered."""
ABOUT_CODE: Final = ("retry", "cancel")
"""And to a durable function whose code asks for other calls than its journal holds: no step of it failed."""

BY_ITSELF: Final = frozenset({PauseType.USER_REQUESTED, PauseType.RESOURCE_PRESSURE})
"""Somebody wanted it so, or it passes: nobody is waited for."""
OF_THE_TASK: Final = frozenset({PauseType.USER_REQUESTED, PauseType.LIMIT_REACHED, PauseType.RESOURCE_PRESSURE})
"""Pauses of the whole task: while one is open an answer to another starts nothing."""


FOR_PRODUCER: Final = frozenset({"run_producer", "supply_output"})
"""Answers to an unresolved dependency that concern the step which should have given the output."""
LIFTED_BY_RESUME: Final = frozenset({PauseType.USER_REQUESTED, PauseType.RESOURCE_PRESSURE})
"""Pauses of the whole task that `resume` ends; the others want an answer."""
MAY_ANSWER: Final[dict[str, tuple[str, ...]]] = {
    "human": ("human",),
    "llm": ("human", "llm"),
    "anyone": ("human", "llm", "service"),
}
"""Which kinds of actors the word `by` lets answer."""


@record
class GatedCall:
    """The call that somebody is asked about, exactly as it would be made."""

    tool: str
    tool_version: str
    effect: Effect
    input: Sealed
    """Its arguments; of a `for_each` a list of them, null where an item is not called."""
    editable: tuple[str, ...] = ()
    of_items: bool = False
    """One question for all items of a `for_each`."""
    policy: str = ""
    """The version of the operator's rules under which it was asked."""


@record
class Pause:
    """One open question of a task."""

    id: PauseId
    step: StepPath | None
    reason: Reason
    title: str
    why: str
    guidance: str | None = None
    call: GatedCall | None = None
    show: tuple[JsonValue, ...] = ()
    may_answer: tuple[str, ...] = MAY_ANSWER["anyone"]
    expires_at: Instant | None = None
    on_timeout: str | None = None

    @property
    def type(self) -> PauseType:
        """The tag of its reason."""
        return TYPE_OF[type(self.reason)]

    @property
    def of_the_task(self) -> bool:
        """Whether it holds the whole task: while it is open an answer to another starts nothing."""
        return self.step is None

    @property
    def answers(self) -> tuple[str, ...]:
        """What may be answered to this very question."""
        allowed = ANSWERS[self.type]
        if self.type is PauseType.TOOL_ERROR and self.of_the_task:
            return ABOUT_CODE
        if self.call is not None and not self.call.editable:
            return tuple(answer for answer in allowed if answer != "edit")
        return allowed


@record
class Grant:
    """Somebody allowed one call: this tool, this version, these arguments, under these rules. For one effect."""

    approval: PauseId
    tool: str
    tool_version: str
    policy: str
    digest: Digest
    items: Sealed | None = None
    """The arguments of every item, if the question was about all items of a `for_each`."""
    expires_at: Instant | None = None


@record
class DurableWait:
    """A wait that is no call: nothing is in flight, nothing is lost with the worker."""

    kind: str
    detail: str
    until: Instant | None
    output: Sealed | None
    ref: str | None = None
