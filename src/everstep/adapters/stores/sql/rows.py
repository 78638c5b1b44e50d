"""Rows <-> domain. A word that no version of ours writes is refused, never passed on."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from everstep.adapters.stores.chain import beginning
from everstep.adapters.stores.journal import NO_TASK
from everstep.domain.errors import StoreRefused
from everstep.domain.ids import Digest, Epoch, Instant, Seq, TaskId, WorkerId
from everstep.domain.pauses import PauseStatus
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskRow
from everstep.ports.store import Dead, KeptPause, Stale, TaskSummary, Worker
from everstep.wire.pause import decode_pause

Row: TypeAlias = Sequence[Any]
"""Columns in the order of their statement; STRICT tables vouch for their types."""
Figures: TypeAlias = tuple[str | int | None, ...]


class Guard(NamedTuple):
    """What a write must find unchanged."""

    num: int
    status: TaskStatus
    generation: int
    epoch: Epoch
    worker: WorkerId | None
    last_seq: Seq
    head: bytes | None
    """The last link of its audit chain."""
    steady: tuple[object, ...] | None = None
    """What its holder wrote last of the figures that hardly ever change; None: not known."""


def newborn(num: int, owner: str) -> Guard:
    """What stands before the first line of a task: its chain begins with whose it is."""
    return Guard(num, TaskStatus.QUEUED, 1, Epoch(0), None, Seq(1), beginning(owner))


def guard_of(row: Row) -> Guard:
    """From `find_guard`."""
    num, status, generation, epoch, worker, last_seq, head = row
    return Guard(num, status_of(status), generation, epoch, worker, last_seq, head)


def stale(guard: Guard | None) -> Stale:
    """The refusal of a write that did not find what it expected."""
    if guard is None:
        return NO_TASK
    return Stale(status=guard.status, epoch=guard.epoch, worker=guard.worker, last_seq=guard.last_seq)


def status_of(text: str) -> TaskStatus:
    """Raises StoreRefused for a word of a newer version, or of nobody."""
    try:
        return TaskStatus(text)
    except ValueError:
        raise StoreRefused(f"the store holds a status that this version does not know: {text!r}") from None


def figures(row: TaskRow) -> Figures:
    """The columns that a holder writes, in the order of `update_task`."""
    return (
        row.status,
        row.generation,
        row.recoveries,
        row.done,
        row.due_at,
        row.started_at,
        row.ended_at,
        row.outcome,
        row.error_code,
    )


def steady(row: TaskRow) -> tuple[object, ...]:
    """The figures that hardly ever change from one step to the next."""
    return (row.status, row.generation, row.due_at, row.started_at, row.ended_at, row.outcome, row.error_code)


def summary(row: Row) -> TaskSummary:
    """From `list_tasks`."""
    return TaskSummary(
        id=TaskId(row[0]),
        owner=row[1],
        key=row[2],
        title=row[3],
        plan_name=row[4],
        plan_digest=Digest(row[5]),
        priority=row[6],
        created_at=Instant(row[7]),
        updated_at=Instant(row[8]),
        epoch=Epoch(row[9]),
        worker=row[10],
        seq=Seq(row[11]),
        steps=row[12],
        row=TaskRow(
            status=status_of(row[13]),
            generation=row[14],
            recoveries=row[15],
            done=row[16],
            due_at=row[17],
            started_at=row[18],
            ended_at=row[19],
            outcome=row[20],
            error_code=row[21],
        ),
    )


def dead(row: Row) -> Dead:
    """From `find_dead`."""
    task, status, epoch, *worker = row
    return Dead(task=TaskId(task), status=status_of(status), epoch=Epoch(epoch), worker=_worker(worker))


def _worker(row: Row) -> Worker | None:
    if row[0] is None:
        return None
    return Worker(
        id=WorkerId(row[0]),
        name=row[1],
        host=row[2],
        pid=row[3],
        version=row[4],
        started_at=Instant(row[5]),
        heartbeat_at=Instant(row[6]),
        released=row[7] is not None,
    )


def kept_pause(row: Row) -> KeptPause:
    """From `list_pauses`."""
    task, owner, body, status, opened_at, due_at, plan_name = row
    return KeptPause(
        task=TaskId(task),
        owner=owner,
        pause=decode_pause(body),
        status=PauseStatus(status),
        opened_at=Instant(opened_at),
        due_at=due_at,
        plan_name=plan_name,
    )
