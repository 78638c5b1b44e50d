"""The state of a task, and what travels between the engine and the store.

`TaskState` is the fold of one journal. It is the one mutable thing of the domain: it belongs to exactly one walk,
which applies what it is about to commit; if the commit is refused, the state is thrown away and read again.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from everstep.domain.breaker import Toll
from everstep.domain.continued import Handover, TaskStarted
from everstep.domain.detour import Degraded, Detour
from everstep.domain.events import Actor, Draft, ErrorRecord, Issue, Link, Recorded, SkipReason, TaskPausing
from everstep.domain.ids import Digest, Epoch, Instant, Millis, PauseId, Seq, StepPath, TaskId, WorkerId
from everstep.domain.limits import Budget
from everstep.domain.pauses import DurableWait, Grant, Pause
from everstep.domain.plan import Effect, OnError, PlanSpec, StepSpec
from everstep.domain.record import hot_record, record
from everstep.domain.states import ENDED, TERMINAL, Phase, StepStatus, TaskStatus
from everstep.domain.values import UNFINISHED_BYTES_MAX, JsonObject, JsonValue, Sealed
from everstep.domain.vouched import Vouched

FINALLY_MS = 60_000
"""What the `finally` steps of a cancelled task get, in all."""


@hot_record
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
    approval: PauseId | None = None  # the grant it used up


@dataclass(init=False)
class StepState:
    """Where one step, or one item of it, stands.

    What nobody has set is read from the class: a plan makes all its steps at once, and most have not begun.
    """

    path: StepPath
    items_open: dict[int | str, None]
    """Items, or parts, begun and not ended, in order."""
    status: StepStatus = StepStatus.PENDING
    phase: Phase | None = None
    attempts: int = 0
    tries: int = 0  # logical ones: a crash repeats the key of a try, a deliberate retry begins a new one
    settled: int = 0  # attempts that led to an outcome which somebody set aside: nothing of them is gone on with
    retries: int = 0
    """Transient ones used by the tool in force; those of other categories stand in the detour."""
    retry_at: Instant | None = None
    detour: Detour | None = None
    clock_from: Instant | None = None
    """When its deadline began to count, if not with its start: a pause stops that clock."""
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
    given: Sealed | None = None
    """The whole arguments of a client's call; the plan's do not count beside them."""
    asked: Sealed | None = None  # what a durable function calls it with
    asked_after: int = 0  # how many outcomes that function had heard then: it can depend on no later one
    answer: JsonValue = None
    grant: Grant | None = None
    approval: PauseId | None = None  # the one that its latest call has used
    spent: PauseId | None = None
    """An approval that covers this path no longer: somebody decided to call anew."""
    decision: JsonObject | None = None
    """What was said when approval was asked for, for `steps.<id>.approval`."""
    last_effect: Effect | None = None
    waits_since: Instant | None = None  # its latest wait, for a retry or for anything but an answer
    started_at: Instant | None = None
    ended_at: Instant | None = None
    child: TaskId | None = None  # the task that this step made; it stays known after its end
    undone_by: tuple[TaskId, StepPath] | None = None
    """The task that takes this outcome back, and the step of it that does."""
    items: Sealed | None = None
    items_next: int = 0
    items_ended: int = 0
    items_failed: int = 0

    def __init__(self, path: StepPath) -> None:
        self.path = path
        self.items_open = {}

    @property
    def ended(self) -> bool:
        """Whether it has its outcome."""
        return self.status in ENDED

    @property
    def counted_from(self) -> Instant | None:
        """When the time for all its attempts and waits began."""
        return self.clock_from or self.started_at

    @property
    def in_flight(self) -> bool:
        """Whether a call may be under way."""
        return self.attempt is not None and self.wait is None


@dataclass(slots=True, kw_only=True)
class TaskState(Vouched):
    """All that later stages may see of a task."""

    id: TaskId
    owner: str
    plan: PlanSpec
    plan_digest: Digest
    first_digest: Digest
    """Of the plan that it was made with: what its key stands for."""
    trusted: bool
    key: str | None
    title: str
    inputs: Sealed
    labels: dict[str, str]
    priority: int
    workspace: str
    pause_after: str | None
    pause_timeout_ms: Millis | None
    created_at: Instant
    created_by: Actor
    parent: Link | None = None
    handover: Handover | None = None
    """What is between the task and a client that takes over; nothing for most."""
    revision: int = 1
    strange: dict[str, frozenset[str] | None] = field(default_factory=dict)
    status: TaskStatus = TaskStatus.QUEUED
    generation: int = 1
    epoch: Epoch = Epoch(0)
    worker: WorkerId | None = None
    recoveries: int = 0
    seq: Seq = Seq(0)
    updated_at: Instant = Instant(0)
    started_at: Instant | None = None
    claimed_at: Instant | None = None
    paused_at: Instant | None = None
    ended_at: Instant | None = None
    cancelled_at: Instant | None = None
    hurried: bool = False
    """Cancelled twice: the `finally` steps are left out."""
    outcome: str | None = None
    outputs: Sealed | None = None
    issues: tuple[Issue, ...] = ()
    error: ErrorRecord | None = None
    failing: ErrorRecord | None = None
    """Set when a critical step failed: nothing new starts but `finally`."""
    failing_step: StepPath | None = None
    steps: dict[StepPath, StepState] = field(default_factory=dict)
    specs: dict[str, StepSpec] = field(default_factory=dict)
    pauses: dict[PauseId, Pause] = field(default_factory=dict)
    """Open ones, oldest first."""
    opened: dict[PauseId, Instant] = field(default_factory=dict)  # when each pause was
    warned: set[PauseId] = field(default_factory=set)  # of which it was said that they will run out
    lifted: Pause | None = None
    """A pause of the whole task that was lifted before it took effect."""
    closed: dict[PauseId, Recorded] = field(default_factory=dict)
    """Answers and expiries, by pause: a late answer learns whose came first."""
    cancel_reason: str = "requested"
    pausing: TaskPausing | None = None
    """How a pause that has not taken effect yet was asked for."""
    open: dict[StepPath, OpenAttempt] = field(default_factory=dict)
    """Attempts without an end, durable waits included."""
    timers: dict[StepPath, Instant] = field(default_factory=dict)
    """When retries and durable waits are due."""
    children: dict[StepPath, TaskId] = field(default_factory=dict)
    """Tasks that steps of this one wait for."""
    listening: dict[StepPath, None] = field(default_factory=dict)
    """Steps that wait for a signal."""
    past: dict[StepPath, tuple[int, int, int]] = field(default_factory=dict)
    """Attempts and tries of items that an earlier generation left behind: both count on."""
    awaiting: dict[StepPath, StepPath] = field(default_factory=dict)
    """Steps that wait for a producer which was put back: it takes their place among the parallel ones."""
    done: int = 0  # ended steps of the plan, sub-steps not counted
    under_way: int = 0  # steps of the plan that started and have not ended
    ended_first: int = 0
    """How many steps at the beginning of the plan have ended: nobody needs to look at them again."""
    work_ms: int = 0
    budget: Budget = field(default_factory=Budget)
    artifacts: frozenset[Digest] = frozenset()  # what its calls have left: later ones may be given it
    ends: list[StepPath] = field(default_factory=list)
    """Calls of a durable function in the order in which they ended, and in which its code hears of them."""
    stages: tuple[str, ...] = ()  # what its code says that it will come by
    announced: dict[str, int] = field(default_factory=dict)
    """What was said about its schedule, by event, and in which generation."""

    @property
    def terminal(self) -> bool:
        """Whether it ended."""
        return self.status in TERMINAL

    def on_error(self, step: StepSpec) -> OnError:
        """What this step's failure means for this task: where somebody takes over, it is handed to them."""
        said = self.plan.on_error(step)
        handed = said is OnError.FAIL and self.handover is not None and self.handover.takes_over
        return OnError.PAUSE if handed else said

    def is_optional(self, path: StepPath) -> bool:
        """Whether the task goes on without this step."""
        return self.on_error(self.specs[path]) is OnError.CONTINUE

    @property
    def in_flight(self) -> tuple[StepPath, ...]:
        """Steps whose call may be under way."""
        return tuple(path for path in self.open if self.steps[path].wait is None)

    @property
    def held_back(self) -> bool:
        """Whether a pause of the whole task is open: then nothing starts."""
        return bool(self.pauses) and any(pause.of_the_task for pause in self.pauses.values())


@hot_record
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
        state.status,
        state.generation,
        state.recoveries,
        state.done,
        due_at(state, starting) if state.timers or state.budget.deadline is not None else None,
        state.started_at,
        state.ended_at,
        state.outcome,
        state.error.failure.code if state.error else None,
    )


def unfinished(state: TaskState) -> tuple[StepPath, ...]:
    """What has no outcome, items before the step they belong to; it stands for them where they are too many."""
    paths = [step.path for step in state.steps.values() if not step.ended]
    if sum(map(len, paths)) > UNFINISHED_BYTES_MAX:
        paths = [path for path in paths if path in state.specs]
    return tuple(sorted(paths, key=lambda path: (path[-1] != "]", path)))


def due_at(state: TaskState, starting: Collection[StepPath] = ()) -> Instant | None:
    """When the next retry or wait is due, or the task itself; one that is being cancelled waits no longer."""
    due = min((at for path, at in state.timers.items() if path not in starting), default=None)
    latest = finally_until(state)
    if latest is None:
        return min((at for at in (due, state.budget.deadline) if at is not None), default=None)
    return None if due is None else min(due, latest)


def finally_until(state: TaskState) -> Instant | None:
    """When a task that is being cancelled gives its `finally` steps up: then, or at once if asked twice."""
    if state.status is not TaskStatus.CANCELLING or state.cancelled_at is None:
        return None
    return state.cancelled_at if state.hurried else Instant(state.cancelled_at + FINALLY_MS)


@record
class NewTask:
    """A checked plan on its way into the store; `live_max`: of unfinished tasks of its owner, counted with it."""

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
    live_max: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    commands: "tuple[Command, ...]" = ()
    """What is written with it or not at all: outcomes it begins with, and a line in the journal it comes from."""
    first: "StepCommit | None" = None
    """Claim it in the same transaction, and begin: whoever creates a task and has a place for it need not wait."""


@record
class Lease:
    """A worker's right to write a task: this epoch, this incarnation."""

    task: TaskId
    epoch: Epoch
    worker: WorkerId


@hot_record
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
    approval: PauseId | None = None
    """The grant it uses up."""
    degraded: Degraded | None = None


@hot_record
class Intent:
    """A call that is written down. Only a store makes one; without one no tool is called."""

    task: TaskId
    step: StepPath
    attempt: OpenAttempt


@hot_record
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
    children: tuple[NewTask, ...] = ()
    """Tasks that steps of this one make: in the same transaction, and only once."""
    toll: Toll | None = None
    """What the breakers learn, and which proposals need their leave; a proposal without it is refused alone."""
    taken: TaskStarted | None = None
    """The lease is taken with this commit, from a task that nobody holds: the event before all others."""
    actor: Actor | None = None
    """Who makes it happen, if it is not the engine by itself."""


@record
class Command:
    """A write from outside the lease, guarded by (status, generation, open pause); the epoch stands.

    Beside a holder only status, generation, ends and pauses of the row are written: its figures are its own. While
    it is free, or if the plan changes, `last_seq` guards it too: a step that begins meanwhile must not be changed.
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
    steps: int | None = None
    """How many steps the plan has now, if the command changes that."""
    ends: int | None = None
    """How many steps of the plan it ends, if it puts one back; then `last_seq` guards it beside a holder too."""


@record
class Sweep:
    """A dead worker's task on its way to `stalled`, guarded by (status, epoch, worker, last_seq); the epoch rises."""

    task: TaskId
    status: TaskStatus
    epoch: Epoch
    worker: WorkerId | None
    at: Instant
    drafts: tuple[Draft, ...]
    row: TaskRow
    last_seq: Seq | None = None  # up to where its journal was read: who is only taken for dead may write on
