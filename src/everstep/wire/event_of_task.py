"""The `data` of every event of a task as a whole (interfaces, 5.7): written by `of`, read by `body`.

The order of the fields is their order on the wire. What this version does not know is null.
"""

from typing import Any

from msgspec import Raw, Struct, field

from everstep.domain import events as e
from everstep.domain.continued import Continued
from everstep.domain.ids import Digest, Epoch, Millis, PauseId, StepPath, WorkerId
from everstep.domain.limits import TaskLimits
from everstep.domain.pauses import PauseType
from everstep.domain.plan import PlanSpec
from everstep.domain.states import TaskStatus
from everstep.wire.change import ChangeData
from everstep.wire.failure import (
    Error,
    IssueData,
    read_error,
    read_failure,
    read_issues,
    write_error,
    write_failure,
    write_issues,
)
from everstep.wire.payload import Payload, read, write
from everstep.wire.times import maybe_instant, maybe_text


class Limits(Struct):
    """The most a task may use: times in seconds, sizes in bytes."""

    calls: int | None
    cost: float | None
    wall_time: float | None
    output: int | None
    on_reached: str
    cpu_time: float | None = None
    disk: int | None = None
    memory: int | None = None

    @classmethod
    def of(cls, limits: TaskLimits) -> "Limits":
        return cls(
            calls=limits.calls,
            cost=limits.cost,
            wall_time=None if limits.wall_time_ms is None else limits.wall_time_ms / 1000,
            output=limits.output_bytes,
            on_reached=limits.on_reached,
            cpu_time=None if limits.cpu_time_ms is None else limits.cpu_time_ms / 1000,
            disk=limits.disk_bytes,
            memory=limits.memory_bytes,
        )

    def read(self) -> TaskLimits:
        """The limits again."""
        return TaskLimits(
            calls=self.calls,
            cost=self.cost,
            wall_time_ms=None if self.wall_time is None else round(self.wall_time * 1000),
            output_bytes=self.output,
            cpu_time_ms=None if self.cpu_time is None else round(self.cpu_time * 1000),
            disk_bytes=self.disk,
            memory_bytes=self.memory,
            on_reached=self.on_reached,
        )


class TaskCreated(Struct, kw_only=True):
    plan: Raw
    """The plan as `wire/plan` spells it, or a Payload that refers to it."""
    plan_digest: Digest
    trusted: bool
    key: str | None
    title: str
    inputs: Payload
    labels: dict[str, str]
    priority: int
    limits: Limits | None = None
    deadline: str | None = None
    pause_timeout: float | None = None
    pause_after: str | None
    continue_by: str | None = None
    unannounced: bool | None = None
    workspace: str
    parent: e.Link | None = None

    @classmethod
    def of(cls, body: e.TaskCreated, plan: Raw) -> "TaskCreated":
        return cls(
            plan=plan,
            plan_digest=body.plan_digest,
            trusted=body.trusted,
            key=body.key,
            title=body.title,
            inputs=write(body.inputs),
            labels=body.labels,
            priority=body.priority,
            pause_timeout=None if body.pause_timeout_ms is None else body.pause_timeout_ms / 1000,
            limits=None if body.limits is None else Limits.of(body.limits),
            deadline=maybe_text(body.deadline),
            pause_after=body.pause_after,
            continue_by=body.continue_by,
            unannounced=body.unannounced or None,
            workspace=body.workspace,
            parent=body.parent,
        )

    def body(self, plan: PlanSpec) -> e.TaskCreated:
        return e.TaskCreated(
            plan=plan,
            plan_digest=self.plan_digest,
            trusted=self.trusted,
            key=self.key,
            title=self.title,
            inputs=read(self.inputs),
            labels=self.labels,
            priority=self.priority,
            workspace=self.workspace,
            pause_after=self.pause_after,
            parent=self.parent,
            pause_timeout_ms=None if self.pause_timeout is None else Millis(round(self.pause_timeout * 1000)),
            limits=None if self.limits is None else self.limits.read(),
            deadline=maybe_instant(self.deadline),
            continue_by=self.continue_by,
            unannounced=bool(self.unannounced),
        )


class ContinuedData(Struct):
    """The call that a start is made for."""

    step: StepPath
    arguments: Payload
    key: str | None


class TaskStarted(Struct, omit_defaults=True):
    from_status: TaskStatus = field(name="from")
    worker: WorkerId
    epoch: Epoch
    continued: ContinuedData | None = None

    @classmethod
    def of(cls, body: e.TaskStarted) -> "TaskStarted":
        call = body.continued
        said = None if call is None else ContinuedData(call.step, write(call.arguments), call.key)
        return cls(body.from_status, body.worker, body.epoch, said)

    def body(self) -> e.TaskStarted:
        said = self.continued
        call = None if said is None else Continued(step=said.step, arguments=read(said.arguments), key=said.key)
        return e.TaskStarted(from_status=self.from_status, worker=self.worker, epoch=self.epoch, continued=call)


class TaskContinued(Struct):
    tool: str
    step: StepPath | None
    output: Payload | None
    error: Error | None
    key: str | None

    @classmethod
    def of(cls, body: e.TaskContinued, step: StepPath | None) -> "TaskContinued":
        output = None if body.output is None else write(body.output)
        error = None if body.failure is None else write_failure(body.failure, step)
        return cls(body.tool, step, output, error, body.key)

    def body(self) -> e.TaskContinued:
        output = None if self.output is None else read(self.output)
        failure = None if self.error is None else read_failure(self.error)
        return e.TaskContinued(tool=self.tool, output=output, failure=failure, key=self.key)


class TaskPaused(Struct):
    pause: PauseId
    type: PauseType

    @classmethod
    def of(cls, body: e.TaskPaused) -> "TaskPaused":
        return cls(body.pause, body.reason_type)

    def body(self) -> e.TaskPaused:
        return e.TaskPaused(pause=self.pause, reason_type=self.type)


class TaskRecovered(Struct):
    from_status: TaskStatus = field(name="from")
    reason: str
    worker: WorkerId | None
    epoch: Epoch
    last_heartbeat_at: str | None
    threshold_s: float
    recoveries: int
    steps: tuple[e.RecoveredStep, ...]

    @classmethod
    def of(cls, body: e.TaskRecovered) -> "TaskRecovered":
        return cls(
            from_status=body.from_status,
            reason=body.reason,
            worker=body.worker,
            epoch=body.epoch,
            last_heartbeat_at=maybe_text(body.last_heartbeat_at),
            threshold_s=body.threshold_s,
            recoveries=body.recoveries,
            steps=body.steps,
        )

    def body(self) -> e.TaskRecovered:
        return e.TaskRecovered(
            from_status=self.from_status,
            reason=self.reason,
            worker=self.worker,
            epoch=self.epoch,
            last_heartbeat_at=maybe_instant(self.last_heartbeat_at),
            threshold_s=self.threshold_s,
            recoveries=self.recoveries,
            steps=self.steps,
        )


class TaskCancelled(Struct):
    reason: str
    skipped: tuple[StepPath, ...]
    issues: tuple[IssueData, ...]

    @classmethod
    def of(cls, body: e.TaskCancelled) -> "TaskCancelled":
        return cls(body.reason, body.skipped, write_issues(body.issues))

    def body(self) -> e.TaskCancelled:
        return e.TaskCancelled(reason=self.reason, skipped=self.skipped, issues=read_issues(self.issues))


class TaskCompleted(Struct):
    outcome: str
    outputs: Payload
    issues: tuple[IssueData, ...]
    duration_s: float
    work_s: float

    @classmethod
    def of(cls, body: e.TaskCompleted) -> "TaskCompleted":
        return cls(body.outcome, write(body.outputs), write_issues(body.issues), body.duration_s, body.work_s)

    def body(self) -> e.TaskCompleted:
        return e.TaskCompleted(
            outcome=self.outcome,
            outputs=read(self.outputs),
            issues=read_issues(self.issues),
            duration_s=self.duration_s,
            work_s=self.work_s,
        )


class TaskFailed(Struct):
    error: Error
    skipped: tuple[StepPath, ...]
    issues: tuple[IssueData, ...]
    duration_s: float
    work_s: float

    @classmethod
    def of(cls, body: e.TaskFailed) -> "TaskFailed":
        error = write_error(body.error, body.step, final=True)
        return cls(error, body.skipped, write_issues(body.issues), body.duration_s, body.work_s)

    def body(self) -> e.TaskFailed:
        return e.TaskFailed(
            error=read_error(self.error),
            skipped=self.skipped,
            duration_s=self.duration_s,
            work_s=self.work_s,
            issues=read_issues(self.issues),
            step=None if self.error.step is None else StepPath(self.error.step),
        )


class TaskReopened(Struct):
    generation: int
    from_step: StepPath
    kept: tuple[StepPath, ...]
    superseded: tuple[StepPath, ...]
    arguments: dict[str, dict[str, Any]]  # any JSON: msgspec has no recursive type for it
    note: str | None

    @classmethod
    def of(cls, body: e.TaskReopened) -> "TaskReopened":
        return cls(body.generation, body.from_step, body.kept, body.superseded, body.arguments, body.note)

    def body(self) -> e.TaskReopened:
        return e.TaskReopened(
            generation=self.generation,
            from_step=self.from_step,
            kept=self.kept,
            superseded=self.superseded,
            arguments=self.arguments,
            note=self.note,
        )


class TaskUpdated(Struct):
    changes: dict[str, Any]  # any JSON: msgspec has no recursive type for it

    @classmethod
    def of(cls, body: e.TaskUpdated) -> "TaskUpdated":
        return cls(body.changes)

    def body(self) -> e.TaskUpdated:
        return e.TaskUpdated(changes=self.changes)


class PlanRevised(Struct):
    revision: int
    digest: Digest
    base_digest: Digest
    diff: tuple[ChangeData, ...]
    note: str | None

    @classmethod
    def of(cls, body: e.PlanRevised) -> "PlanRevised":
        diff = tuple(ChangeData.of(change) for change in body.diff)
        return cls(body.revision, body.digest, body.base_digest, diff, body.note)

    def body(self) -> e.PlanRevised:
        return e.PlanRevised(
            revision=self.revision,
            digest=self.digest,
            base_digest=self.base_digest,
            diff=tuple(change.body() for change in self.diff),
            note=self.note,
        )
