"""What the store in memory keeps of one task, and what it tells of troubles over all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from everstep.adapters.stores import journal
from everstep.adapters.stores.journal import Stamp
from everstep.adapters.stores.memory_tail import MemoryTail
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.errors import Validation
from everstep.domain.events import Actor, TaskCreated
from everstep.domain.pauses import Pause, PauseStatus
from everstep.domain.queue import rank
from everstep.domain.states import CLAIMABLE
from everstep.domain.words import Words
from everstep.ports import store as port
from everstep.wire.event import long_plan


@dataclass(slots=True, kw_only=True)
class Kept:
    """One task."""

    new: t.NewTask
    row: t.TaskRow
    num: int
    epoch: i.Epoch = i.Epoch(0)
    worker: i.WorkerId | None = None
    updated_at: i.Instant
    tail: MemoryTail
    events: list[port.Journaled] = field(default_factory=list)

    def write(self, events: Sequence[port.Journaled]) -> None:
        """Into its journal, and into the line of all."""
        self.events.extend(events)
        self.tail.add(self.new.owner, events)

    @property
    def last_seq(self) -> i.Seq:
        return i.Seq(len(self.events))

    @property
    def parent(self) -> i.TaskId | None:
        return journal.parent_of(self.new)

    def stale(self) -> port.Stale:
        return port.Stale(status=self.row.status, epoch=self.epoch, worker=self.worker, last_seq=self.last_seq)

    def stamp(self, at: i.Instant, generation: int, actor: Actor) -> Stamp:
        return Stamp(task=self.new.id, last_seq=self.last_seq, generation=generation, at=at, actor=actor)

    def taken_by(self, commit: t.StepCommit) -> port.Claimed | None:
        """Held from now on by whoever takes it with a commit, if nobody does and it stands as the commit believes."""
        taken = commit.taken
        known = self.worker is None and self.last_seq + 1 == commit.last_seq
        claimed = journal.take(commit, self.epoch) if known else None
        if claimed is None or taken is None or self.row.status is not taken.from_status:
            return None
        self.take(claimed, commit.at)
        return claimed

    def take(self, claimed: port.Claimed, at: i.Instant) -> None:
        """A worker holds it from now on."""
        started_at = at if self.row.started_at is None else self.row.started_at
        status = journal.status_once_claimed(self.row.status)
        self.row = replace(self.row, status=status, started_at=started_at)
        self.epoch, self.worker, self.updated_at = claimed.lease.epoch, claimed.lease.worker, at
        self.write(claimed.events)

    def rename(self, words: Words) -> None:
        """What is said is so from now on."""
        new = self.new
        self.new = replace(
            new,
            title=new.title if words.title is None else words.title,
            labels=new.labels if words.labels is None else words.labels,
            priority=new.priority if words.priority is None else words.priority,
        )

    def summary(self) -> port.TaskSummary:
        new = self.new
        return port.TaskSummary(
            id=new.id,
            owner=new.owner,
            key=new.key,
            title=new.title,
            plan_name=new.plan_name,
            plan_digest=new.plan_digest,
            priority=new.priority,
            created_at=new.at,
            updated_at=self.updated_at,
            epoch=self.epoch,
            worker=self.worker,
            seq=self.last_seq,
            steps=new.steps,
            row=self.row,
        )


def fits(kept: Kept, which: port.TaskFilter) -> bool:
    """Whether a list shows it."""
    new = kept.new
    text = (which.text or "").lower()
    return (
        which.owner in (None, new.owner)
        and (which.statuses is None or kept.row.status in which.statuses)
        and which.plan_name in (None, new.plan_name)
        and which.plan_digest in (None, new.plan_digest)
        and which.inputs_digest in (None, new.inputs_digest)
        and (which.since is None or new.at >= which.since)
        and (which.until is None or new.at < which.until)
        and which.parent in (None, kept.parent)
        and (which.tool is None or which.tool in new.tools)
        and (which.label is None or new.labels.get(which.label[0]) == which.label[1])
        and any(text in word for word in (new.title.lower(), new.id, (kept.row.error_code or "").lower()))
    )


def page_of(tasks: Iterable[Kept], which: port.TaskFilter) -> port.Page:
    """A part of a list, in the order that is asked for."""
    changed = which.sort == "-updated_at"
    found = sorted(
        tasks,
        key=lambda kept: (kept.updated_at if changed else kept.new.at, kept.num),
        reverse=which.sort != "created_at",
    )
    if which.cursor is not None:
        marks = [f"{kept.num}{which.sort}" for kept in found]
        if which.cursor not in marks:
            raise Validation("the cursor was altered", what_to_do="begin without a cursor")
        found = found[marks.index(which.cursor) + 1 :]
    shown = found[: which.limit]
    cursor = f"{shown[-1].num}{which.sort}" if len(found) > which.limit else None
    return port.Page(items=tuple(kept.summary() for kept in shown), next_cursor=cursor)


def opened_pause(kept: Kept, pause: Pause, at: i.Instant, due: i.Instant | None) -> port.KeptPause:
    """A question as it is listed."""
    return port.KeptPause(
        task=kept.new.id,
        owner=kept.new.owner,
        pause=pause,
        status=PauseStatus.OPEN,
        opened_at=at,
        due_at=due,
        plan_name=kept.new.plan_name,
    )


def line_up(tasks: Iterable[Kept]) -> list[Kept]:
    """Those that can be claimed, in the order in which they are."""
    waiting = [kept for kept in tasks if kept.worker is None and kept.row.status in CLAIMABLE]
    return sorted(waiting, key=lambda kept: (rank(kept.new.priority, kept.new.at), kept.num))


def plan_payload(new: t.NewTask) -> tuple[i.Digest, bytes] | None:
    """The plan of a new task, if it is too long to stand in its first event."""
    assert isinstance(new.created.body, TaskCreated)
    return long_plan(new.created.body)
