"""From what the engine hands over to what stands in the journal. Shared by every store; knows none.

A seq is known before the write: it follows from `last_seq`, and the write is refused if that has moved. So events can
be encoded, and the answer made, before anything is looked up.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from everstep.domain import events as e
from everstep.domain.errors import LimitExceeded, RequestError, Validation
from everstep.domain.events import Actor, ActorKind, Draft, Recorded
from everstep.domain.expiry import due_after_warning, first_due
from everstep.domain.ids import Digest, Epoch, Instant, PauseId, Seq, TaskId, WorkerId, split_path
from everstep.domain.pauses import Pause, PauseStatus
from everstep.domain.record import record
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.task import Command, Intent, Lease, NewTask, OpenAttempt, StepCommit, TaskRow
from everstep.domain.values import ARTIFACT_BYTES_MAX
from everstep.ports.store import Claim, Claimed, Committed, Journaled, Stale
from everstep.wire.event import Pen
from everstep.wire.values import digest_of

GRANTING: Final = frozenset({TaskStatus.RUNNING, TaskStatus.CANCELLING})
"""Statuses in which a call may start; in `cancelling` only the plan's `finally` steps are proposed."""

QUEUED: Final = TaskRow(
    status=TaskStatus.QUEUED,
    generation=1,
    recoveries=0,
    done=0,
    due_at=None,
    started_at=None,
    ended_at=None,
    outcome=None,
    error_code=None,
)
"""The row of a task that was created a moment ago."""
NO_TASK: Final = Stale(status=TaskStatus.QUEUED, epoch=Epoch(0), worker=None, last_seq=Seq(0))
"""The refusal of a write to a task that does not exist."""


@record
class Stamp:
    """What the events of one write have in common."""

    task: TaskId
    last_seq: Seq
    generation: int
    at: Instant
    actor: Actor


@lru_cache(maxsize=16)
def engine_actor(worker: WorkerId) -> Actor:
    """The system, by the hand of this worker."""
    return Actor(kind=ActorKind.SYSTEM, id=worker, via="engine")


def write_down(stamp: Stamp, drafts: Iterable[Draft]) -> list[Recorded]:
    """Drafts with their seq: dense, from `last_seq + 1`."""
    task, generation, at, actor = stamp.task, stamp.generation, stamp.at, stamp.actor
    return [
        Recorded(task=task, seq=Seq(seq), at=at, generation=generation, actor=actor, step=draft.step, body=draft.body)
        for seq, draft in enumerate(drafts, stamp.last_seq + 1)
    ]


def commit_drafts(stamp: Stamp, drafts: Sequence[Draft]) -> Committed:
    """The answer to a write of these events, if its guard holds."""
    pen = Pen(stamp.task, stamp.at, stamp.generation, stamp.actor)
    events = _written(pen, stamp.task, stamp.last_seq, drafts)
    return Committed(last_seq=Seq(stamp.last_seq + len(events)), intents=(), refused=(), events=tuple(events))


def commit_steps(commit: StepCommit) -> Committed:
    """The answer to a holder's commit, if its guard holds. Outcomes come first, then the granted intents."""
    lease = commit.lease
    granted = commit.proposals if commit.row.status in GRANTING else ()
    task, at = lease.task, commit.at
    pen = Pen(task, at, commit.generation, commit.actor or engine_actor(lease.worker))
    events = _written(pen, task, commit.last_seq, commit.drafts)
    seq = commit.last_seq + len(events)
    intents = []
    for proposal in granted:
        seq += 1
        encoded = pen.write_intent(Seq(seq), lease, proposal)
        step = proposal.step
        events.append(Journaled(task, Seq(seq), e.AttemptStarted.TYPE, step, encoded))
        attempt = OpenAttempt(
            proposal.attempt,
            lease.epoch,
            lease.worker,
            proposal.tool,
            proposal.tool_version,
            proposal.effect,
            proposal.idempotency_key,
            proposal.input,
            at,
            proposal.approval,
        )
        intents.append(Intent(task, step, attempt))
    return Committed(Seq(seq), tuple(intents), () if granted else commit.proposals, tuple(events))


def _written(pen: Pen, task: TaskId, last_seq: Seq, drafts: Sequence[Draft]) -> list[Journaled]:
    events = []
    seq = last_seq
    for one in drafts:
        seq = Seq(seq + 1)
        body = one.body
        kind = body.type if isinstance(body, e.Unknown) else body.TYPE
        events.append(Journaled(task, seq, kind, one.step, pen.write(seq, one)))
    return events


def take(commit: StepCommit, before: Epoch) -> Claimed | None:
    """The lease that a commit takes before it writes; None if it is not the next epoch's."""
    taken, lease = commit.taken, commit.lease
    assert taken is not None
    if lease.epoch != before + 1 or (taken.epoch, taken.worker) != (lease.epoch, lease.worker):
        return None
    actor = commit.actor or engine_actor(lease.worker)
    last_seq = Seq(commit.last_seq - 1)
    stamp = Stamp(task=lease.task, last_seq=last_seq, generation=commit.generation, at=commit.at, actor=actor)
    drafts = (Draft(body=taken),)
    return Claimed(
        lease=lease,
        last_seq=commit.last_seq,
        recorded=tuple(write_down(stamp, drafts)),
        events=commit_drafts(stamp, drafts).events,
    )


def start(asked: Claim, stamp: Stamp, status: TaskStatus, epoch: Epoch) -> Claimed:
    """A lease on a task that was in `status` under `epoch`."""
    lease = Lease(task=stamp.task, epoch=Epoch(epoch + 1), worker=asked.worker)
    drafts = (Draft(body=e.TaskStarted(from_status=status, worker=lease.worker, epoch=lease.epoch)),)
    return Claimed(
        lease=lease,
        last_seq=Seq(stamp.last_seq + 1),
        recorded=tuple(write_down(stamp, drafts)),
        events=commit_drafts(stamp, drafts).events,
    )


def status_once_claimed(status: TaskStatus) -> TaskStatus:
    """Cancelling stays so: what is left to do is to end it."""
    return status if status is TaskStatus.CANCELLING else TaskStatus.RUNNING


def figures_added(command: Command) -> dict[str, int]:
    """What a command adds to a holder's figures: ends of steps; and outcomes, which set recoveries back."""
    ended = [one for one in command.drafts if isinstance(one.body, (e.StepCompleted, e.StepFailed, e.StepSkipped))]
    ends = sum(one.step is not None and split_path(one.step)[1] is None for one in ended)
    return {
        "ends": ends if command.ends is None else command.ends,
        "outcomes": sum(not isinstance(one.body, e.StepSkipped) for one in ended),
    }


def check_row(row: TaskRow) -> None:
    """Unknown words are refused on their way in, and every end has its time."""
    if not isinstance(row.status, TaskStatus):
        raise Validation(f"no task can be {row.status!r}", details={"status": str(row.status)})
    if (row.ended_at is None) == (row.status in TERMINAL):
        raise Validation(f"a task that is {row.status} {'has' if row.ended_at is None else 'has not'} ended")


def parent_of(new: NewTask) -> TaskId | None:
    """The task that a new one is made of."""
    created = new.created.body
    assert isinstance(created, e.TaskCreated)
    return None if created.parent is None else created.parent.task


def key_spent() -> RequestError:
    """The refusal of a key whose task is no more."""
    return RequestError("the task of this key was deleted", code="gone", what_to_do="use another key")


def too_many_tasks(most: int) -> LimitExceeded:
    """The refusal of one more task."""
    return LimitExceeded(
        f"there are {most} unfinished tasks of this owner, and no more may be added",
        code="too_many_tasks",
        what_to_do="let some end or cancel them, or raise `limits.live_tasks`",
        details={"limit": most},
    )


def check_payload(digest: Digest, raw: bytes) -> None:
    """A payload is what its name says, and not too much."""
    if len(raw) > ARTIFACT_BYTES_MAX:
        raise LimitExceeded(f"a payload of {len(raw)} bytes is over the limit of {ARTIFACT_BYTES_MAX}")
    if digest_of(raw) != digest:
        raise Validation(f"the payload is not {digest}")


def label_text(labels: Mapping[str, str]) -> str:
    """Labels as they are kept for lists."""
    return json.dumps(dict(sorted(labels.items())), ensure_ascii=False, separators=(",", ":"))


@record
class PauseOpened:
    """A pause that a write opens."""

    pause: Pause
    at: Instant

    @property
    def due_at(self) -> Instant | None:
        """When somebody has to look at it, if nobody answers."""
        return first_due(self.pause, self.at)


@record
class PauseWarned:
    """A pause that will run out: when, and when somebody has to look again."""

    id: PauseId
    expires_at: Instant
    due_at: Instant | None


@record
class PauseClosed:
    """A pause that a write closes."""

    id: PauseId
    status: PauseStatus


@record
class PausesWithdrawn:
    """The task ended: whatever is still open is withdrawn."""


PauseChange: TypeAlias = PauseOpened | PauseWarned | PauseClosed | PausesWithdrawn

_TELLING: Final = frozenset(
    {
        e.PauseOpened,
        e.PauseAnswered,
        e.PauseExpiring,
        e.PauseExpired,
        e.PauseWithdrawn,
        e.TaskCompleted,
        e.TaskFailed,
        e.TaskCancelled,
    }
)


def pause_changes(drafts: Sequence[Draft], at: Instant) -> list[PauseChange]:
    """What a write does to the list of pauses."""
    return [_pause_change(one.body, at) for one in drafts if type(one.body) in _TELLING]


def _pause_change(body: e.Body, at: Instant) -> PauseChange:
    match body:
        case e.PauseOpened(pause=pause):
            return PauseOpened(pause=pause, at=at)
        case e.PauseAnswered(pause=pause_id):
            return PauseClosed(id=pause_id, status=PauseStatus.ANSWERED)
        case e.PauseExpiring(pause=pause_id, expires_at=expires_at):
            return PauseWarned(id=pause_id, expires_at=expires_at, due_at=due_after_warning(body))
        case e.PauseExpired(pause=pause_id):
            return PauseClosed(id=pause_id, status=PauseStatus.EXPIRED)
        case e.PauseWithdrawn(pause=pause_id):
            return PauseClosed(id=pause_id, status=PauseStatus.WITHDRAWN)
        case _:
            return PausesWithdrawn()
