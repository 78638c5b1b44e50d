"""The state of a task, and what travels between the engine and the store.

`TaskState` is the fold of one journal. It is the one mutable thing of the domain: it belongs to exactly one walk,
which applies what it is about to commit; if the commit is refused, the state is thrown away and read again.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from everstep.domain.events import Actor, Draft, ErrorRecord, Issue, SkipReason, TaskPausing
from everstep.domain.ids import Digest, Epoch, Instant, PauseId, Seq, StepPath, TaskId, WorkerId
from everstep.domain.limits import Budget
from everstep.domain.pauses import OF_THE_TASK, Pause
from everstep.domain.plan import Effect, PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.states import ENDED, TERMINAL, Phase, StepStatus, TaskStatus
from everstep.domain.values import JsonObject, JsonValue, Sealed


@record
class OpenAttempt:
    """A call whose intent is durable and whose end is not."""

    number: int
    epoch: Epoch
    worker: WorkerId
    tool: str
    tool_version: str
    effect: Effect
    idempotency_key: str
    input: Sealed
    started_at: Instant


@record
class DurableWait:
    """A wait that is no call: nothing is in flight, nothing is lost with the worker."""

    kind: str
    detail: str
    until: Instant | None
    output: Sealed | None


@dataclass(slots=True, kw_only=True)
class StepState:
    """Where one step, or one item of it, stands."""

    path: StepPath
    status: StepStatus = StepStatus.PENDING
    phase: Phase | None = None
    attempts: int = 0
    tries: int = 0
    """Logical tries: a crash repeats the key of a try, a deliberate retry begins a new one."""
    retries: int = 0
    retry_at: Instant | None = None
    attempt: OpenAttempt | None = None
    wait: DurableWait | None = None
    output: Sealed | None = None
    via: str | None = None
    tool_used: str | None = None
    error: ErrorRecord | None = None
    skip_reason: SkipReason | None = None
    upstream: StepPath | None = None
    pause: PauseId | None = None
    arguments: JsonObject | None = None
    """Arguments given by an answer; they win over the plan's."""
    answer: JsonValue = None
    last_effect: Effect | None = None
    started_at: Instant | None = None
    still_ms: int = 0
    """How long the task had been paused when it began."""
    ended_at: Instant | None = None
    items: Sealed | None = None
    items_next: int = 0
    items_ended: int = 0
    items_failed: int = 0
    items_open: dict[int, None] = field(default_factory=dict)
    """Items begun and not ended, in order."""

    @property
    def ended(self) -> bool:
        """Whether it has its outcome."""
        return self.status in ENDED

    @property
    def in_flight(self) -> bool:
        """Whether a call may be under way."""
        return self.attempt is not None and self.wait is None


@dataclass(slots=True, kw_only=True)
class TaskState:
    """All that later stages may see of a task."""

    id: TaskId
    owner: str
    plan: PlanSpec
    plan_digest: Digest
    trusted: bool
    key: str | None
    title: str
    inputs: Sealed
    labels: dict[str, str]
    priority: int
    workspace: str
    pause_after: str | None
    created_at: Instant
    created_by: Actor
    status: TaskStatus = TaskStatus.QUEUED
    generation: int = 1
    epoch: Epoch = Epoch(0)
    worker: WorkerId | None = None
    recoveries: int = 0
    seq: Seq = Seq(0)
    updated_at: Instant = Instant(0)
    started_at: Instant | None = None
    claimed_at: Instant | None = None
    ended_at: Instant | None = None
    cancelled_at: Instant | None = None
    outcome: str | None = None
    outputs: Sealed | None = None
    issues: tuple[Issue, ...] = ()
    error: ErrorRecord | None = None
    failing: ErrorRecord | None = None
    """Set when a critical step failed: nothing new starts but `finally`."""
    steps: dict[StepPath, StepState] = field(default_factory=dict)
    specs: dict[str, StepSpec] = field(default_factory=dict)
    pauses: dict[PauseId, Pause] = field(default_factory=dict)
    """Open ones, oldest first."""
    lifted: Pause | None = None
    """A pause of the whole task that was lifted before it took effect."""
    pausing: TaskPausing | None = None
    """How a pause that has not taken effect yet was asked for."""
    still_since: Instant | None = None
    """Since when it is paused."""
    still_ms: int = 0
    """How long it was paused before: deadlines stand still meanwhile."""
    open: dict[StepPath, OpenAttempt] = field(default_factory=dict)
    """Attempts without an end, durable waits included."""
    timers: dict[StepPath, Instant] = field(default_factory=dict)
    """When retries and durable waits are due."""
    awaiting: dict[StepPath, StepPath] = field(default_factory=dict)
    """Steps that wait for a producer which was put back: it takes their place among the parallel ones."""
    done: int = 0
    """Ended steps of the plan, sub-steps not counted."""
    under_way: int = 0
    """Steps of the plan that started and have not ended."""
    ended_first: int = 0
    """How many steps at the beginning of the plan have ended: nobody needs to look at them again."""
    work_ms: int = 0
    budget: Budget = field(default_factory=Budget)

    @property
    def terminal(self) -> bool:
        """Whether it ended."""
        return self.status in TERMINAL

    @property
    def in_flight(self) -> tuple[StepPath, ...]:
        """Steps whose call may be under way."""
        return tuple(path for path in self.open if self.steps[path].wait is None)

    @property
    def held_back(self) -> bool:
        """Whether a pause of the whole task is open: then nothing starts."""
        return bool(self.pauses) and any(pause.type in OF_THE_TASK for pause in self.pauses.values())


@record
class TaskRow:
    """What is kept beside the journal for lists and claims; written in the same transaction."""

    status: TaskStatus
    generation: int
    recoveries: int
    done: int
    due_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    outcome: str | None
    error_code: str | None


def row_of(state: TaskState, starting: Collection[StepPath] = ()) -> TaskRow:
    """The row that belongs to a state, once the calls that are `starting` have started."""
    return TaskRow(
        status=state.status,
        generation=state.generation,
        recoveries=state.recoveries,
        done=state.done,
        due_at=due_at(state, starting),
        started_at=state.started_at,
        ended_at=state.ended_at,
        outcome=state.outcome,
        error_code=state.error.failure.code if state.error else None,
    )


def began_at(state: TaskState, step: StepState) -> Instant | None:
    """When a step began, by a clock that stands still while the task is paused."""
    return None if step.started_at is None else Instant(step.started_at + state.still_ms - step.still_ms)


def unfinished(state: TaskState) -> tuple[StepPath, ...]:
    """Everything without an outcome, items before the step they belong to."""
    paths = [step.path for step in state.steps.values() if not step.ended]
    return tuple(sorted(paths, key=lambda path: (path[-1] != "]", path)))


def due_at(state: TaskState, starting: Collection[StepPath] = ()) -> Instant | None:
    """When the next retry or wait is due, or the task itself."""
    if not state.timers:
        return state.budget.deadline
    timers = [at for path, at in state.timers.items() if path not in starting]
    return min((*timers, state.budget.deadline) if state.budget.deadline is not None else timers, default=None)


@record
class NewTask:
    """A checked plan on its way into the store."""

    id: TaskId
    owner: str
    plan_name: str
    plan_digest: Digest
    inputs_digest: Digest
    key: str | None
    title: str
    priority: int
    steps: int
    at: Instant
    actor: Actor
    created: Draft
    live_max: int
    """Of unfinished tasks of this owner; counted in the transaction that creates it."""
    labels: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    first: "StepCommit | None" = None
    """Claim it in the same transaction, and begin: whoever creates a task and has a place for it need not wait."""


@record
class Lease:
    """A worker's right to write a task: this epoch, this incarnation."""

    task: TaskId
    epoch: Epoch
    worker: WorkerId


@record
class Proposal:
    """A call that could start now. Inert: real only once the store has granted it."""

    step: StepPath
    attempt: int
    tool: str
    tool_version: str
    effect: Effect
    idempotency_key: str
    input: Sealed
    coerced: tuple[str, ...] = ()


@record
class Intent:
    """A call that is written down. Only a store makes one; without one no tool is called."""

    task: TaskId
    step: StepPath
    attempt: int
    epoch: Epoch
    tool: str
    tool_version: str
    effect: Effect
    idempotency_key: str
    input: Sealed
    started_at: Instant


@record
class StepCommit:
    """Outcomes, and the proposals that follow from them: one transaction, guarded by (epoch, worker, last_seq)."""

    lease: Lease
    last_seq: Seq
    generation: int
    at: Instant
    drafts: tuple[Draft, ...]
    proposals: tuple[Proposal, ...]
    row: TaskRow
    release: bool = False
    """Give the lease up: the task waits for somebody or has ended."""


@record
class Command:
    """A write from outside the lease, guarded by (status, generation, open pause); the epoch stands.

    Beside a holder only status, generation, ends and pauses of the row are written: its figures are its own. While
    nobody holds the task all figures are the command's; then `last_seq`, if given, guards it too.
    """

    task: TaskId
    status: TaskStatus
    generation: int
    pause: PauseId | None
    actor: Actor
    at: Instant
    drafts: tuple[Draft, ...]
    row: TaskRow
    last_seq: Seq | None = None
    ends: int | None = None
    """How many steps of the plan it ends, if it puts one back; then `last_seq` guards it beside a holder too."""


@record
class Sweep:
    """A dead worker's task on its way to `stalled`, guarded by (status, epoch, worker); the epoch rises."""

    task: TaskId
    status: TaskStatus
    epoch: Epoch
    worker: WorkerId | None
    at: Instant
    drafts: tuple[Draft, ...]
    row: TaskRow
