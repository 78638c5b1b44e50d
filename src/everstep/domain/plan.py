"""What was asked: a plan in normal form, as typed facts.

`None` means "not said": defaults are applied where they are needed (`plan.defaults`, then the tool, then the
settings), so that the digest of a plan never depends on them. Arguments keep their `${…}` text; `bindings`
compiles it. JSON spelling and digest are `wire/plan`'s business, the check of a plan `check`'s.
"""

from enum import StrEnum

from everstep.domain.ids import Millis
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue


class Effect(StrEnum):
    """What a repeated call may do, in rising order of care."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    VERIFIABLE = "verifiable"
    ONCE = "once"

    @property
    def care(self) -> int:
        """How careful this class is; a plan may only raise it."""
        return _CARE[self]

    @property
    def repeatable(self) -> bool:
        """Whether calling again harms nobody."""
        return self in (Effect.PURE, Effect.IDEMPOTENT)


_CARE = {Effect.PURE: 0, Effect.IDEMPOTENT: 1, Effect.VERIFIABLE: 2, Effect.ONCE: 3}


class OnError(StrEnum):
    """What a step's final failure means for its task."""

    FAIL = "fail"
    CONTINUE = "continue"
    PAUSE = "pause"


class OnUncertain(StrEnum):
    """What to do when nobody knows whether a `once` call happened."""

    ASK = "ask"
    RETRY = "retry"
    FAIL = "fail"


@record
class RetrySpec:
    """How transient failures of one step are retried."""

    times: int | None = None
    delay_ms: Millis | None = None
    factor: float | None = None
    max_delay_ms: Millis | None = None
    within_ms: Millis | None = None
    only: tuple[str, ...] | None = None


@record
class LimitsSpec:
    """Bounds of a task or of one attempt; sizes in bytes, times in milliseconds."""

    wall_time_ms: Millis | None = None
    cpu_time_ms: Millis | None = None
    memory_bytes: int | None = None
    output_bytes: int | None = None
    disk_bytes: int | None = None
    calls: int | None = None
    cost: float | None = None
    on_reached: str | None = None


@record
class ApproveSpec:
    """A question to a person before the call."""

    title: str
    show: JsonValue = None
    edit: tuple[str, ...] | bool = ()
    by: str = "human"
    within_ms: Millis | None = None
    on_timeout: str | None = None
    on_reject: str = "fail"


@record
class FallbackSpec:
    """Another tool, or a literal value (then `tool` is None), when the first choice failed."""

    tool: str | None = None
    arguments: JsonObject | None = None
    value: JsonValue = None
    timeout_ms: Millis | None = None
    retry: RetrySpec | None = None


@record
class UndoSpec:
    """How to take a completed step back."""

    tool: str
    arguments: JsonObject
    timeout_ms: Millis | None = None
    retry: RetrySpec | None = None
    approve: ApproveSpec | None = None


@record
class ResourceSpec:
    """An MCP resource read for a step: a URI, or a template with bound variables."""

    uri: str
    vars: JsonObject | None = None


@record
class StepSpec:
    """One tool call of a plan."""

    id: str
    tool: str | None = None
    arguments: JsonObject
    bind: str
    title: str | None = None
    needs: tuple[str, ...] | None = None
    when: JsonValue = True
    for_each: JsonValue = None
    parallel: int | None = None
    timeout_ms: Millis | None = None
    retry: RetrySpec | None = None
    retryable: bool = False
    on_error: OnError | None = None
    fallback: tuple[FallbackSpec, ...] = ()
    approve: ApproveSpec | None = None
    on_uncertain: OnUncertain | None = None
    effect: Effect | None = None
    undo: UndoSpec | None = None
    guidance: str | None = None
    resources: tuple[ResourceSpec, ...] = ()
    pool: str | None = None
    breaker: str | None = None
    limits: LimitsSpec | None = None


@record
class DefaultsSpec:
    """For steps that do not say."""

    timeout_ms: Millis | None = None
    retry: RetrySpec | None = None
    on_error: OnError | None = None
    on_uncertain: OnUncertain | None = None
    limits: LimitsSpec | None = None


def attempt_limits(plan: "PlanSpec", step: StepSpec) -> LimitsSpec | None:
    """Bounds of one attempt, key by key: the step's, else the plan's defaults; None if nobody says any."""
    usual, own = plan.defaults.limits, step.limits
    if usual is None or own is None:
        return own or usual
    return LimitsSpec(
        output_bytes=usual.output_bytes if own.output_bytes is None else own.output_bytes,
        cost=usual.cost if own.cost is None else own.cost,
        memory_bytes=usual.memory_bytes if own.memory_bytes is None else own.memory_bytes,
        cpu_time_ms=usual.cpu_time_ms if own.cpu_time_ms is None else own.cpu_time_ms,
        disk_bytes=usual.disk_bytes if own.disk_bytes is None else own.disk_bytes,
    )


@record
class InputSpec:
    """One declared input: a JSON Schema with `type`, which may also be the word `secret`."""

    name: str
    schema: JsonObject

    @property
    def required(self) -> bool:
        """Whether a task cannot start without it."""
        return "default" not in self.schema


@record
class PlanSpec:
    """What to do: inputs, steps, outputs."""

    name: str
    title: str | None = None
    description: str | None = None
    guidance: str | None = None
    inputs: tuple[InputSpec, ...] = ()
    defaults: DefaultsSpec = DefaultsSpec()
    limits: LimitsSpec = LimitsSpec()
    parallel: int | None = None
    done_when: JsonValue = None
    steps: tuple[StepSpec, ...] = ()
    finally_steps: tuple[StepSpec, ...] = ()
    outputs: JsonObject
    durable: str | None = None
    """Of a durable function: the version of its code. Its steps are the calls that the code has asked for so far."""

    def on_error(self, step: StepSpec) -> OnError:
        """What this step's failure means here."""
        return step.on_error or self.defaults.on_error or OnError.FAIL

    def on_uncertain(self, step: StepSpec) -> OnUncertain:
        """What an uncertain end of this step means here."""
        return step.on_uncertain or self.defaults.on_uncertain or OnUncertain.ASK
