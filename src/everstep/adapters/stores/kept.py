"""One task as the store in memory keeps it."""

from dataclasses import dataclass, field

from everstep.adapters.stores.journal import Stamp
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.events import Actor, TaskCreated
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
    events: list[port.Journaled] = field(default_factory=list)

    @property
    def last_seq(self) -> i.Seq:
        return i.Seq(len(self.events))

    def stale(self) -> port.Stale:
        return port.Stale(status=self.row.status, epoch=self.epoch, worker=self.worker, last_seq=self.last_seq)

    def stamp(self, at: i.Instant, generation: int, actor: Actor) -> Stamp:
        return Stamp(task=self.new.id, last_seq=self.last_seq, generation=generation, at=at, actor=actor)

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


def plan_payload(new: t.NewTask) -> tuple[i.Digest, bytes] | None:
    """The plan of a new task, if it is too long for its event."""
    assert isinstance(new.created.body, TaskCreated)
    return long_plan(new.created.body)
