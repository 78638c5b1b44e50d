"""One task of the store in memory: its row, its journal, and whether a filter wants it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from everstep.adapters.stores.journal import Stamp
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.events import Actor
from everstep.domain.queue import rank
from everstep.domain.states import CLAIMABLE
from everstep.ports import store as port


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


def fits(kept: Kept, which: port.TaskFilter) -> bool:
    """Whether a list is to show it."""
    new = kept.new
    text = (which.text or "").lower()
    return (
        which.owner in (None, new.owner)
        and (which.statuses is None or kept.row.status in which.statuses)
        and which.plan_name in (None, new.plan_name)
        and which.plan_digest in (None, new.plan_digest)
        and which.inputs_digest in (None, new.inputs_digest)
        and (which.since is None or new.at >= which.since)
        and (which.tool is None or which.tool in new.tools)
        and (which.label is None or new.labels.get(which.label[0]) == which.label[1])
        and any(text in word for word in (new.title.lower(), new.id, (kept.row.error_code or "").lower()))
    )


def line_up(tasks: Iterable[Kept]) -> list[Kept]:
    """Those that can be claimed, in the order in which they are."""
    waiting = [kept for kept in tasks if kept.worker is None and kept.row.status in CLAIMABLE]
    return sorted(waiting, key=lambda kept: (rank(kept.new.priority, kept.new.at), kept.num))
