"""Store: the one place where tasks live. Coarse, plural verbs; every write is a guarded batch.

Rules every answer keeps (one conformance suite, `everstep.testing.conformance.store`, tests them all):
- A write is durable when its call returns, and visible to no reader before.
- `seq` is allocated under the task's row: `last_seq + 1`, dense, in commit order.
- A unit whose guard does not hold is refused alone (`Stale`); it never sinks the batch.
- Whatever can forbid an intent is an event of that task, so comparing `last_seq` guards all of it.
- Domain types only: no row, cursor, SQL text or driver type crosses this line.
"""

from collections.abc import Awaitable, Sequence
from typing import Literal, Protocol, TypeAlias

from everstep.domain.breaker import Breaker
from everstep.domain.events import ErrorRecord, Recorded
from everstep.domain.failure import Category
from everstep.domain.histogram import Histogram
from everstep.domain.ids import Digest, Epoch, Instant, PauseId, Seq, StepPath, TaskId, WorkerId
from everstep.domain.pauses import Pause, PauseStatus, PauseType
from everstep.domain.record import hot_record, record
from everstep.domain.states import TaskStatus
from everstep.domain.task import Command, Intent, Lease, NewTask, Proposal, StepCommit, Sweep, TaskRow, TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.beside import Beside
from everstep.ports.worker import Worker as Worker  # noqa: PLC0414 -- part of this port too


@hot_record
class Journaled:
    """One event as it went into the journal: the same bytes are row, digest input and frame body."""

    task: TaskId
    seq: Seq
    type: str
    step: StepPath | None
    encoded: bytes


@record
class Created:
    """The task is durable; `new` is false when the same key, plan and inputs made it before.

    `events` are all that were written; `committed` answers the first commit that came with a new task.
    """

    task: TaskId
    new: bool
    events: tuple[Journaled, ...] = ()
    committed: "Committed | None" = None


@record
class KeyTaken:
    """The key belongs to a task of another plan or other inputs."""

    task: TaskId


@record
class Claimed:
    """A lease, and the events that the claim wrote, to be folded onto a state known up to `last_seq`."""

    lease: Lease
    last_seq: Seq
    recorded: tuple[Recorded, ...]
    events: tuple[Journaled, ...]


@hot_record
class Committed:
    """Durable. `intents` are the granted proposals, `refused` the others."""

    last_seq: Seq
    intents: tuple[Intent, ...]
    refused: tuple[Proposal, ...]
    events: tuple[Journaled, ...]
    breakers: tuple[Breaker, ...] = ()
    """As they stand after a commit that told or asked them something."""


@record
class Stale:
    """Refused: somebody wrote in between. What stands now; `epoch` 0 if there is no such task."""

    status: TaskStatus
    epoch: Epoch
    worker: WorkerId | None
    last_seq: Seq


Sort: TypeAlias = Literal["-created_at", "created_at", "-updated_at"]
"""Newest first, oldest first, or what changed last first."""


@record
class TaskFilter:
    """Which tasks to list; None means any."""

    owner: str | None = None
    statuses: frozenset[TaskStatus] | None = None
    plan_name: str | None = None
    plan_digest: Digest | None = None
    inputs_digest: Digest | None = None
    since: Instant | None = None
    until: Instant | None = None
    parent: TaskId | None = None
    text: str | None = None
    tool: str | None = None
    """A tool that its plan calls."""
    label: tuple[str, str] | None = None
    reason: PauseType | None = None
    """Of an open pause."""
    needs_you: bool = False
    """Only tasks with an open pause that a person may answer."""
    sort: Sort = "-created_at"
    limit: int = 50
    cursor: str | None = None


@record
class TaskSummary:
    """One row of a list."""

    id: TaskId
    owner: str
    key: str | None
    title: str
    plan_name: str
    plan_digest: Digest
    priority: int
    created_at: Instant
    updated_at: Instant
    epoch: Epoch
    worker: WorkerId | None
    seq: Seq
    steps: int
    row: TaskRow


@record
class Page:
    """A part of a list, newest first, and where it goes on."""

    items: tuple[TaskSummary, ...]
    next_cursor: str | None


@record
class KeptPause:
    """A pause with its task and where it stands."""

    task: TaskId
    owner: str
    pause: Pause
    status: PauseStatus
    opened_at: Instant
    due_at: Instant | None = None
    """When somebody has to look at it, if nobody answers."""
    plan_name: str = ""


@record
class PauseFilter:
    """Which pauses to list."""

    owner: str | None = None
    task: TaskId | None = None
    id: PauseId | None = None
    status: PauseStatus | None = PauseStatus.OPEN
    timed: bool = False
    """Only open ones that run out, the next one first."""
    newest: bool = False
    """The other way round: what was opened last comes first."""
    limit: int = 500


@record
class Claim:
    """What a worker asks for: at most `limit` tasks, of `only` these if given."""

    worker: WorkerId
    at: Instant
    limit: int
    only: frozenset[TaskId] | None = None
    passing_over: frozenset[TaskId] = frozenset()
    tools: frozenset[str] | None = None
    """What this worker can call; a store that others use too passes over plans that need more. None: anything."""
    suspect_from: int = 3
    """Tasks with this many counted recoveries may be what kills their worker …"""
    suspects: int = 0
    """… and only so many of them are taken."""


@record
class Dead:
    """A task whose worker is gone."""

    task: TaskId
    status: TaskStatus
    epoch: Epoch
    worker: Worker | None


@record
class Due:
    """Tasks whose time has come, and when the next one's will."""

    tasks: tuple[TaskId, ...]
    next_at: Instant | None


@record
class Info:
    """What kind of store this is and how it is doing."""

    kind: str
    location: str
    schema_version: int
    durability: str
    tasks: dict[str, int]
    events: int
    size_bytes: int
    details: JsonObject
    commits: Histogram | None = None
    """How long flushes took, since it was opened; None if there are none."""


@record
class Flaw:
    """Something of the store that is not as it must be, and where."""

    what: str
    task: TaskId | None = None
    seq: Seq | None = None

    def __str__(self) -> str:
        place = " ".join([*([self.task] if self.task else []), *([f"seq {self.seq}"] if self.seq else [])])
        return f"{place}: {self.what}" if place else self.what


Creation: TypeAlias = Created | KeyTaken | Stale
Commit: TypeAlias = Committed | Stale


@record
class ErrorFilter:
    """Which errors to list; None means any."""

    owner: str | None = None
    category: Category | None = None
    code: str | None = None
    tool: str | None = None
    task: TaskId | None = None
    since: Instant | None = None
    limit: int = 50
    cursor: int | None = None
    """The number of the last one seen."""


@record
class KeptError:
    """One recorded error: of an attempt, or of a step that failed without one."""

    number: int
    task: TaskId
    step: StepPath | None
    tool: str | None
    at: Instant
    error: ErrorRecord


class Troubles(Protocol):
    """What went wrong over all tasks. Breakers change in `commit_steps`, with the outcomes they learn from."""

    async def breakers(self, owner: str | None = None) -> Sequence[Breaker]:
        """All that are kept, of one owner or of everybody."""

    async def reset(self, owner: str, id: str) -> Breaker | None:
        """Forget a breaker of this owner: calls pass again. What it was; None if there is none."""

    async def errors(self, which: ErrorFilter) -> Sequence[KeptError]:
        """Errors, newest first, each once."""


@record
class Placed:
    """An event, whose it is, and its place in the order of all commits."""

    place: int
    owner: str
    event: Journaled


class Tail(Protocol):
    """The journals of all tasks as one line, in the order of their commits. Places rise; they are not dense."""

    async def last(self) -> Placed | None:
        """The newest event of all; None if there is none."""

    async def read(self, after: int, limit: int, owner: str | None = None) -> Sequence[Placed]:
        """What comes after a place, of one owner or of everybody."""


class Store(Beside, Protocol):
    """The verbs. Times come in as values; the store never decides by its own clock what an event says."""

    @property
    def troubles(self) -> Troubles:
        """What went wrong over all tasks: breakers and errors."""

    @property
    def tail(self) -> Tail:
        """What happened over all tasks, in one line."""

    async def open(self, worker: Worker) -> None:
        """Lock or register, migrate, verify durability; raises StoreLocked, StoreRefused, Unavailable."""

    async def close(self) -> None:
        """Mark the worker released, let go of everything; nothing is written after."""

    # Tasks
    async def create_tasks(self, tasks: Sequence[NewTask]) -> Sequence[Creation]:
        """Task and first event in one transaction; same owner and key, same task. Its commands stand or all fall."""

    async def load_tasks(self, ids: Sequence[TaskId]) -> Sequence[TaskState | None]:
        """States as the fold of their journals; None for an unknown id."""

    async def list_tasks(self, which: TaskFilter) -> Page:
        """Summaries, newest first; keyset order."""

    async def find_task(self, owner: str, name: str) -> Sequence[TaskId]:
        """Tasks of this owner whose id or key is `name`, or whose id starts with it."""

    async def list_pauses(self, which: PauseFilter) -> Sequence[KeptPause]:
        """Pauses, oldest first; timed ones by when they are due."""

    # Leases
    async def claim_tasks(self, claim: Claim) -> Sequence[Claimed]:
        """Take claimable tasks by priority and age: running (cancelling stays), epoch + 1, `task.started`."""

    def beat(self, worker: WorkerId, at: Instant) -> None:
        """Renew the worker's lease; raises LeaseLost when it was fenced. Blocking: called from the pulse's thread."""

    async def find_dead(self, worker: WorkerId, before: Instant, limit: int) -> Sequence[Dead]:
        """Held tasks of other incarnations that are released, gone, or silent since `before` (fenced here first)."""

    async def sweep(self, sweeps: Sequence[Sweep]) -> Sequence[Committed | Stale]:
        """Move dead workers' tasks, each guarded by (status, epoch, worker); epoch + 1, worker none."""

    async def due(self, worker: WorkerId, at: Instant, limit: int) -> Due:
        """This worker's tasks whose `due_at` has come."""

    # Commits
    def commit_steps(self, commits: Sequence[StepCommit]) -> Awaitable[Sequence[Commit]]:
        """Outcomes, next intents, tasks that steps make, guarded by (epoch, worker, last_seq). No coroutine per lap."""

    async def commit_commands(self, commands: Sequence[Command]) -> Sequence[Commit]:
        """Commands and answers, guarded by (status, generation, open pause)."""

    # Journal and payloads
    async def read_events(self, task: TaskId, after: Seq, limit: int) -> Sequence[Journaled]:
        """The journal from `after + 1` on."""

    async def put_payloads(self, payloads: Sequence[tuple[Digest, bytes]]) -> None:
        """Keep payloads by content, durably, before the commit that refers to them."""

    async def read_payload(self, digest: Digest) -> bytes:
        """The bytes of one payload, whatever they are; raises NotFound."""

    async def get_payloads(self, digests: Sequence[Digest]) -> Sequence[JsonValue]:
        """Payloads by content; raises NotFound."""

    # Keeping
    async def info(self, *, whole: bool = False) -> Info:
        """Figures for health and doctor; `whole`: also those that take a look at every task."""

    async def check(self) -> Sequence[Flaw]:
        """Integrity of the file and of every journal (dense, linked, fold = row)."""
