"""Every event type. The journal is made of these and of nothing else.

A class holds exactly the `data` of its event; the envelope (task, seq, time, generation, actor) is `Recorded`.
What an event means is `fold`'s business, how it is spelled `wire/event`'s. Readers pass unknown types through.
"""

from typing import ClassVar, TypeAlias

from everstep.domain import actors, changes, detour, limits, schedule, states, usage
from everstep.domain.detour import Degraded
from everstep.domain.failure import EffectState, Failure
from everstep.domain.ids import Digest, Epoch, Instant, Millis, PauseId, Seq, StepPath, TaskId, WorkerId
from everstep.domain.limits import TaskLimits
from everstep.domain.pauses import Pause, PauseType
from everstep.domain.plan import Effect, PlanSpec
from everstep.domain.record import hot_record, record
from everstep.domain.states import TaskStatus
from everstep.domain.usage import Usage
from everstep.domain.values import JsonObject, JsonValue, Sealed

ActorKind: TypeAlias = actors.ActorKind
Actor: TypeAlias = actors.Actor
Who: TypeAlias = actors.Who
Link: TypeAlias = changes.Link
TaskReopened: TypeAlias = changes.TaskReopened
PlanRevised: TypeAlias = changes.PlanRevised
TaskStarted: TypeAlias = changes.TaskStarted
TaskContinued: TypeAlias = changes.TaskContinued
TaskUpdated: TypeAlias = changes.TaskUpdated
TaskLimitNear: TypeAlias = limits.TaskLimitNear
TaskAheadOfSchedule: TypeAlias = schedule.TaskAheadOfSchedule
TaskLate: TypeAlias = schedule.TaskLate
Promise: TypeAlias = schedule.Promise
OffSchedule: TypeAlias = schedule.OffSchedule
TaskEarlyCompletion: TypeAlias = schedule.TaskEarlyCompletion
StepFallback: TypeAlias = detour.StepFallback
StepDenied: TypeAlias = detour.StepDenied
OffCourse: TypeAlias = detour.OffCourse
ArtifactAdded: TypeAlias = usage.ArtifactAdded
Noted: TypeAlias = usage.Noted
SkipReason: TypeAlias = states.SkipReason


@record
class Issue:
    """Something of a completed task that did not go as planned."""

    step: StepPath | None
    status: str
    reason: str
    error: Failure | None = None


@record
class ErrorRecord:
    """A failure as it is kept: with its id and its place in the retries."""

    id: str
    failure: Failure
    attempt: int | None = None
    retries: int = 0
    retries_max: int = 0
    retry_at: Instant | None = None
    skipped_steps: tuple[str, ...] = ()
    task_continues: bool = True


@record
class TaskCreated:
    TYPE: ClassVar = "task.created"
    plan: PlanSpec
    plan_digest: Digest
    trusted: bool
    key: str | None
    title: str
    inputs: Sealed
    labels: dict[str, str]
    priority: int
    workspace: str
    pause_after: str | None = None
    pause_timeout_ms: Millis | None = None
    parent: Link | None = None
    limits: TaskLimits | None = None
    deadline: Instant | None = None
    continue_by: str | None = None
    unannounced: bool = False


@record
class TaskPausing:
    TYPE: ClassVar = "task.pausing"
    pause: PauseId
    mode: str
    mode_used: str
    waits_for: tuple[StepPath, ...]


@record
class TaskPaused:
    TYPE: ClassVar = "task.paused"
    pause: PauseId
    reason_type: PauseType


@record
class TaskResumed:
    TYPE: ClassVar = "task.resumed"
    pause: PauseId
    to: TaskStatus
    note: str | None = None


@record
class RecoveredStep:
    """What recovery decided for one interrupted attempt."""

    step: StepPath
    attempt: int
    effect: Effect
    decision: str


@record
class TaskRecovered:
    TYPE: ClassVar = "task.recovered"
    from_status: TaskStatus
    reason: str
    worker: WorkerId | None
    epoch: Epoch
    last_heartbeat_at: Instant | None
    threshold_s: float
    recoveries: int
    steps: tuple[RecoveredStep, ...]


@record
class TaskCancelling:
    TYPE: ClassVar = "task.cancelling"
    note: str | None = None


@record
class TaskCancelled:
    TYPE: ClassVar = "task.cancelled"
    reason: str
    skipped: tuple[StepPath, ...]
    issues: tuple[Issue, ...] = ()


@record
class TaskCompleted:
    TYPE: ClassVar = "task.completed"
    outcome: str
    outputs: Sealed
    issues: tuple[Issue, ...]
    duration_s: float
    work_s: float


@record
class TaskFailed:
    TYPE: ClassVar = "task.failed"
    error: ErrorRecord
    skipped: tuple[StepPath, ...]
    duration_s: float
    work_s: float
    issues: tuple[Issue, ...] = ()
    step: StepPath | None = None
    """The step that failed it; None if none did."""


@record
class StepStarted:
    TYPE: ClassVar = "step.started"
    title: str
    items: Sealed | None = None


@record
class StepWaiting:
    TYPE: ClassVar = "step.waiting"
    kind: str
    detail: str
    until: Instant | None
    output: Sealed | None = None
    ref: str | None = None


@record
class AttemptStarted:
    TYPE: ClassVar = "attempt.started"
    attempt: int
    epoch: Epoch
    worker: WorkerId
    tool: str
    tool_version: str
    effect: Effect
    idempotency_key: str
    input: Sealed
    coerced: tuple[str, ...] = ()
    approval: PauseId | None = None
    degraded: Degraded | None = None


@record
class AttemptEnded:
    """Common shape of the four ways an attempt ends without success."""

    attempt: int
    error: ErrorRecord
    effect_state: EffectState
    called: bool
    duration_s: float
    usage: Usage | None = None


@record
class AttemptFailed(AttemptEnded):
    TYPE: ClassVar = "attempt.failed"


@record
class AttemptTimedOut(AttemptEnded):
    TYPE: ClassVar = "attempt.timed_out"


@record
class AttemptKilled(AttemptEnded):
    TYPE: ClassVar = "attempt.killed"


@record
class AttemptAbandoned(AttemptEnded):
    TYPE: ClassVar = "attempt.abandoned"


@record
class AttemptProbed(Noted):
    TYPE: ClassVar = "attempt.probed"
    attempt: int
    result: str


@record
class StepRetryScheduled:
    TYPE: ClassVar = "step.retry_scheduled"
    attempt: int
    error: ErrorRecord
    new_key: bool
    counted: bool = True
    degraded: Degraded | None = None


@hot_record
class StepCompleted:
    TYPE: ClassVar = "step.completed"
    attempt: int | None
    output: Sealed
    summary: str | None
    via: str
    tool_used: str | None
    duration_s: float
    wall_s: float = 0.0
    degraded: Degraded | None = None
    usage: Usage | None = None
    cached_s: float | None = None


@record
class StepFailed:
    TYPE: ClassVar = "step.failed"
    attempt: int | None
    error: ErrorRecord
    duration_s: float


@record
class StepSkipped:
    TYPE: ClassVar = "step.skipped"
    reason: SkipReason
    upstream: StepPath | None = None


@record
class PauseOpened:
    TYPE: ClassVar = "pause.opened"
    pause: Pause


@record
class PauseAnswered:
    TYPE: ClassVar = "pause.answered"
    pause: PauseId
    answer: str
    note: str | None = None
    arguments: JsonObject | None = None
    output: Sealed | None = None
    value: JsonValue = None
    digest: Digest | None = None
    """Of the call that is granted, as it was asked or as it was edited."""
    diff: tuple[JsonObject, ...] = ()


@record
class PauseExpiring:
    TYPE: ClassVar = "pause.expiring"
    pause: PauseId
    expires_at: Instant
    on_timeout: str


@record
class PauseExpired:
    TYPE: ClassVar = "pause.expired"
    pause: PauseId
    action: str


@record
class PauseWithdrawn:
    TYPE: ClassVar = "pause.withdrawn"
    pause: PauseId
    why: str


@record
class Unknown:
    """An event of a newer version: kept, shown, without meaning here."""

    TYPE: ClassVar = "unknown"
    type: str
    data: JsonObject


Body: TypeAlias = (
    TaskCreated
    | TaskStarted
    | TaskPausing
    | TaskPaused
    | TaskResumed
    | TaskRecovered
    | TaskCancelling
    | TaskCancelled
    | TaskCompleted
    | TaskFailed
    | TaskReopened
    | PlanRevised
    | TaskUpdated
    | TaskLimitNear
    | schedule.Said
    | TaskContinued
    | StepStarted
    | StepWaiting
    | AttemptStarted
    | AttemptFailed
    | AttemptTimedOut
    | AttemptKilled
    | AttemptAbandoned
    | AttemptProbed
    | StepRetryScheduled
    | StepFallback
    | StepDenied
    | StepCompleted
    | StepFailed
    | StepSkipped
    | PauseOpened
    | PauseAnswered
    | PauseExpiring
    | PauseExpired
    | PauseWithdrawn
    | ArtifactAdded
    | Unknown
)


@hot_record
class Draft:
    """An event that is not yet durable: the store gives it its seq."""

    body: Body
    step: StepPath | None = None


@record
class Recorded:
    """An event of the journal."""

    task: TaskId
    seq: Seq
    at: Instant
    generation: int
    actor: Actor
    step: StepPath | None
    body: Body
